// Dma-bufs: memory objects without bytes in the daemon. The kernel's answers come from FaultyOs; the soft card
// registers none. That a card registers them is tests/dmabuf.

#include <fcntl.h>
#include <unistd.h>

#include "daemon/core/memory/mdl_chain.h"
#include "daemon/core/memory/memory_object_fixture_test.h"

namespace rnicd::core {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kDmabufAddress = 0x7f0000000000;

UniqueFd ADmabuf(FaultyOs& os, uint64_t size = kSize) {
  UniqueFd file = MemoryFile(size);
  os.ReportAsDmabuf(file.get());
  return file;
}

class Dmabuf : public MemoryObjectTest {};

TEST_F(Dmabuf, IsAttachedSealedAndUsedLikeOtherMemoryButNeverMapped) {
  const auto object = Attached(ADmabuf(os_));
  EXPECT_THAT(object->BeginUse().status(), FailsWith(ErrorReason::MEMORY_NOT_SEALED));
  ASSERT_TRUE(object->Seal().ok());
  EXPECT_THAT(object->Seal(), FailsWith(ErrorReason::MEMORY_ALREADY_SEALED));
  const auto use = object->BeginUse();
  ASSERT_TRUE(use.ok());
  EXPECT_TRUE(object->is_dmabuf());
  EXPECT_EQ(object->page_bytes(), kPage);
  EXPECT_TRUE(object->mapping().empty());
  EXPECT_EQ(os_.live_mappings(), 0u);
}

TEST_F(Dmabuf, GetsNoSeal) {
  const UniqueFd file = ADmabuf(os_);
  const auto object = Attached(file);
  ASSERT_TRUE(object->Seal().ok());
  EXPECT_EQ(fcntl(file.get(), F_GET_SEALS), 0);
}

TEST_F(Dmabuf, IsImportedWholeAndForReadingAndWriting) {
  const UniqueFd file = ADmabuf(os_, kSize + kPage);
  EXPECT_THAT(NewObject()->Attach(Duplicate(file)), FailsAt(ErrorReason::FIELD_OUT_OF_RANGE, "size"));
  EXPECT_THAT(NewObject(kSize + 2 * kPage)->Attach(Duplicate(file)), FailsAt(ErrorReason::MEMORY_TOO_SHORT, "size"));
  EXPECT_THAT(NewObject()->Attach(ADmabuf(os_, kSize + 1)), FailsAt(ErrorReason::FIELD_OUT_OF_RANGE, "size"))
      << "not whole pages";
  EXPECT_THAT(NewObject()->Attach(ADmabuf(os_, 0)), FailsWith(ErrorReason::MEMORY_TOO_SHORT));
  UniqueFd read_only(open(("/proc/self/fd/" + std::to_string(file.get())).c_str(), O_RDONLY));
  EXPECT_THAT(NewObject(kSize + kPage)->Attach(std::move(read_only)), FailsWith(ErrorReason::MEMORY_READ_ONLY));
  EXPECT_EQ(ChargedBytes(), 0u);
}

TEST_F(Dmabuf, ReleasedIsChargedNoMoreAlthoughItsOwnerHasIt) {
  const UniqueFd file = ADmabuf(os_);
  const auto object = Attached(file);
  ASSERT_TRUE(object->Seal().ok());
  EXPECT_EQ(ChargedBytes(), kSize);
  ASSERT_TRUE(object->Release().ok());
  EXPECT_EQ(ChargedBytes(), 0u);
  EXPECT_EQ(ledger_->used(Resource::kLingeringBytes), 0u);
}

class DmabufChain : public Dmabuf {
 protected:
  DmabufChain() {
    for (const uint64_t id : {1, 2}) {
      objects_[id] = Attached(ADmabuf(os_));
    }
    objects_[3] = Attached(MemoryFile());
    for (const auto& [id, object] : objects_) {
      EXPECT_TRUE(object->Seal().ok());
    }
  }
  absl::StatusOr<MappedRange> Resolve(const std::vector<MdlEntry>& chain, uint64_t length) const {
    return ResolveMdlChain(chain, length, [this](MemoryObjectId id) { return objects_.at(id.value); });
  }

  std::map<uint64_t, std::shared_ptr<MemoryObject>> objects_;
};

// memory, offset, count, address
MdlEntry DmabufEntry(uint64_t memory, uint64_t offset, uint64_t count, uint64_t address) {
  return {.memory_id = {memory}, .byte_offset = offset, .byte_count = count, .virtual_address = {address}};
}

TEST_F(DmabufChain, AdjoiningEntriesAreOnePartOfIt) {
  const auto range = Resolve({DmabufEntry(1, kPage + 8, kPage, kDmabufAddress + 8),
                              DmabufEntry(1, 2 * kPage + 8, kPage, kDmabufAddress + kPage + 8)},
                             kPage + 100);
  ASSERT_TRUE(range.ok()) << range.status();
  ASSERT_TRUE(range->dmabuf.has_value());
  EXPECT_EQ(range->dmabuf->offset, kPage + 8);
  EXPECT_EQ(range->dmabuf->file, objects_.at(1)->file());
  EXPECT_TRUE(range->runs.empty());
  EXPECT_EQ(range->pages, 2u);
  ASSERT_EQ(range->page_runs.size(), 1u);
  EXPECT_EQ(range->page_runs[0].first, 1u);
  EXPECT_EQ(range->page_runs[0].count, 2u);
}

TEST_F(DmabufChain, NothingLiesBesideIt) {
  const std::vector<std::vector<MdlEntry>> chains = {
      {DmabufEntry(1, 0, kPage, kDmabufAddress), DmabufEntry(1, 2 * kPage, kPage, kDmabufAddress + kPage)},
      {DmabufEntry(1, 0, kPage, kDmabufAddress), DmabufEntry(2, 0, kPage, kDmabufAddress + kPage)},
      {DmabufEntry(1, 0, kPage, kDmabufAddress), DmabufEntry(3, 0, kPage, kDmabufAddress + kPage)},
      {DmabufEntry(3, 0, kPage, kDmabufAddress), DmabufEntry(1, kPage, kPage, kDmabufAddress + kPage)},
  };
  for (const std::vector<MdlEntry>& chain : chains) {
    const absl::Status refused = Resolve(chain, 2 * kPage).status();
    EXPECT_THAT(refused, FailsAt(ErrorReason::DEVICE_NOT_CAPABLE, "mdl_chain[1].memory_id"));
    EXPECT_THAT(std::string(refused.message()), HasSubstr("one contiguous part of one dma-buf"));
    EXPECT_TRUE(Resolve(chain, kPage).ok()) << "what lies beyond the length does not matter";
  }
}

TEST_F(DmabufChain, EndsWithTheDmabuf) {
  EXPECT_THAT(Resolve({DmabufEntry(1, kPage, kSize, kDmabufAddress)}, kPage).status(),
              FailsAt(ErrorReason::MDL_RANGE_OUTSIDE_MEMORY, "mdl_chain[0].byte_count"));
}

class DmabufSession : public ::testing::Test {
 protected:
  MemoryObjectId Imported() {
    const absl::StatusOr<MemoryTicket> ticket = owner_.session->Begin()->memory().Import(kSize);
    EXPECT_TRUE(ticket.ok()) << ticket.status();
    const auto memory = *owner_.session->Begin()->memory().Find(ticket->memory);
    EXPECT_TRUE(memory->Attach(Duplicate(file_)).ok());
    EXPECT_TRUE(Owner::Await([&](const Done<>& done) -> MaybePending<> {
                  RNICD_ASSIGN_OR_RETURN(const SessionGuard held, owner_.session->Begin());
                  return held.memory().Seal(memory, done);
                }).ok());
    return ticket->memory;
  }
  uint64_t Used(Resource resource) const { return world_.ledger->used(resource); }

  World world_;
  Owner owner_{world_};
  const UniqueFd file_ = ADmabuf(world_.os);
};

TEST_F(DmabufSession, ACardThatCannotRegisterItIsNamedWithItsKernel) {
  const MemoryObjectId memory = Imported();
  const MemoryRegionId region = owner_.Region();
  EXPECT_THAT(owner_.Register(region, memory, kSize).status(),
              FailsAt(ErrorReason::DEVICE_NOT_CAPABLE, "mdl_chain[0].memory_id"));
  const std::vector<absl::Status> failures = world_.observer.counts().registration_failures;
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_THAT(std::string(failures[0].message()), HasSubstr("adapter soft0 on kernel "));
  EXPECT_EQ(Used(Resource::kPinnedBytes), 0u);
  EXPECT_EQ(Used(Resource::kPendingRequests), 0u);
  EXPECT_EQ(Used(Resource::kMemoryBytes), kSize);
  EXPECT_TRUE(Owner::Await([&](const Done<>& done) -> MaybePending<> {
                RNICD_ASSIGN_OR_RETURN(const SessionGuard held, owner_.session->Begin());
                return held.memory().Release(memory, done);
              }).ok())
      << "nothing uses it any more";
  EXPECT_EQ(Used(Resource::kMemoryObjects), 0u);
}

// A client's exporter may block a card: no thread that other owners need may be blocked by that.
TEST_F(DmabufSession, ARegistrationIsAWorkersHoweverShort) {
  const MemoryObjectId memory = Imported();
  const MemoryRegionId region = owner_.Region();
  auto answer = std::make_shared<Awaited<absl::StatusOr<Registration>>>();
  EXPECT_TRUE(owner_
                  .BeginRegister(region, memory, kPage, {},
                                 [answer](const absl::StatusOr<Registration>& outcome) { answer->Set(outcome); })
                  .pending());
  EXPECT_THAT(answer->Get()->status(), FailsWith(ErrorReason::DEVICE_NOT_CAPABLE));
}

TEST_F(DmabufSession, ItHasNoLogicalAddresses) {
  const MemoryObjectId memory = Imported();
  const AdapterId adapter = owner_.Adapter();
  const MdlEntry entry = DmabufEntry(memory.value, 0, kSize, kDmabufAddress);
  const absl::Status refused =
      owner_.session->Begin()->mappings().Build({.adapter = adapter, .chain = {&entry, 1}, .length = kSize}).status();
  EXPECT_THAT(refused, FailsAt(ErrorReason::DEVICE_NOT_CAPABLE, "mdl_chain[0].memory_id"));
  EXPECT_EQ(Used(Resource::kLogicalMappings), 0u);
}

TEST_F(DmabufSession, ARangeOfAProvisionIsRefusedInItsOwnWords) {
  const MemoryObjectId memory = Imported();
  auto answer = std::make_shared<Awaited<absl::StatusOr<Provisioned>>>();
  const ProtectionDomainId domain = owner_.Domain();
  const auto begun = owner_.session->Begin()->regions().Provision(
      {.memory = memory,
       .domain = domain,
       .ranges = {{.byte_offset = 0, .length = kPage, .address = {kDmabufAddress}, .flags = kMrFlagRemoteWrite}}},
      [answer](const absl::StatusOr<Provisioned>& outcome) { answer->Set(outcome); });
  ASSERT_TRUE(begun.pending());
  const auto provisioned = answer->Get();
  ASSERT_TRUE(provisioned.has_value() && provisioned->ok());
  ASSERT_EQ((*provisioned)->outcomes.size(), 1u);
  const absl::Status refused = (*provisioned)->outcomes[0].status();
  EXPECT_THAT(refused, FailsAt(ErrorReason::DEVICE_NOT_CAPABLE, "memory_id"));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("adapter soft0"));
}

}  // namespace
}  // namespace rnicd::core
