// The C++ library's memory and regions: what they are, what they keep, and what is left when they are gone.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <optional>
#include <set>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/ndk/access_rights.h"
#include "base/status.h"
#include "client/cpp/client.h"
#include "client/cpp/memory.h"
#include "client/cpp/memory_region.h"
#include "tests/integration/library/librnicd_fixture.h"
#include "tests/support/admin_client.h"
#include "tests/support/process/memory_file.h"
#include "tests/support/process/tested_provider.h"

namespace rnicd::test {
namespace {

std::vector<std::span<const std::byte>> Parts(const Memory& memory, size_t count) {
  std::vector<std::span<const std::byte>> parts;
  for (size_t index = 0; index < count; ++index) {
    parts.emplace_back(memory.bytes().subspan(index * kClientPage, kClientPage));
  }
  return parts;
}

// --- memory ---

TEST_F(Librnicd, AllocatedMemoryIsMappedRegisteredAndGivenBack) {
  const Client client = MustConnect();
  {
    const Memory memory = MustAllocate(client, 64 * kClientPage);
    ASSERT_EQ(memory.bytes().size(), 64 * kClientPage);
    EXPECT_EQ(memory.size(), 64 * kClientPage);
    EXPECT_EQ(memory.address().value, reinterpret_cast<uintptr_t>(memory.bytes().data()));
    EXPECT_EQ(memory.page_size(), PageSize::k4KiB);
    EXPECT_NE(memory.id(), MemoryObjectId{});
    EXPECT_EQ(UsedBy(client, "memory_objects"), 1u);
    std::fill(memory.bytes().begin(), memory.bytes().end(), std::byte{0x5a});
    const auto region = MemoryRegion::Register(memory, kMrFlagRemoteWrite);
    ASSERT_TRUE(region.ok()) << region.status();
    EXPECT_TRUE(region->registered());
    EXPECT_EQ(region->base_address().value, memory.address().value);
    EXPECT_EQ(region->length(), memory.size());
    EXPECT_NE(region->remote_token().value, 0u);
    const std::optional<v1::RegionInfo> seen = AdminRegion(daemon(), region->id().value);
    ASSERT_TRUE(seen.has_value());
    EXPECT_EQ(seen->flags(), kMrFlagRemoteWrite);
    EXPECT_EQ(seen->pages(), 64u);
  }
  const v1::GetStatusResponse status = AdminStatus(daemon());
  EXPECT_EQ(status.registered_pages(), 0u);
  EXPECT_EQ(Used(status, "memory_bytes"), 0u);
  EXPECT_EQ(Used(status, "regions"), 0u);
  EXPECT_EQ(status.sessions(), 1u);
}

TEST_F(Librnicd, ImportedMemoryIsTheCallersFile) {
  const Client client = MustConnect();
  const UniqueFd file = MakeSealableMemfd(kMiB);
  const auto memory = Memory::Import(client, file.get(), kMiB);
  ASSERT_TRUE(memory.ok()) << memory.status();
  memory->bytes()[5] = std::byte{9};
  char byte = 0;
  ASSERT_EQ(pread(file.get(), &byte, 1, 5), 1);
  EXPECT_EQ(byte, 9);
  const auto part = memory->bytes().subspan(kClientPage, 100);
  const auto region = MemoryRegion::Register(*memory, part, kMrFlagRemoteRead);
  ASSERT_TRUE(region.ok()) << region.status();
  EXPECT_EQ(region->length(), 100u);
  EXPECT_EQ(region->base_address().value, memory->address().value + kClientPage);
}

TEST_F(Librnicd, EntryDescribesAPartAndRefusesWhatLiesOutside) {
  const Client client = MustConnect();
  const Memory memory = MustAllocate(client, kMiB);
  const std::span<std::byte> bytes = memory.bytes();
  const auto entry = memory.Entry(bytes.subspan(4096, 100));
  ASSERT_TRUE(entry.ok());
  EXPECT_EQ(entry->memory_id, memory.id());
  EXPECT_EQ(entry->byte_offset, 4096u);
  EXPECT_EQ(entry->byte_count, 100u);
  EXPECT_EQ(entry->virtual_address.value, memory.address().value + 4096);
  EXPECT_TRUE(memory.Entry(bytes.last(1)).ok());
  const std::byte* const base = bytes.data();
  for (const std::span<const std::byte> outside :
       {std::span(base, kMiB + 1), std::span(base - 1, 1), std::span(base + kMiB, 1), std::span(base + 1, SIZE_MAX),
        std::span<const std::byte>()}) {
    EXPECT_TRUE(FailedWith(memory.Entry(outside).status(), ErrorReason::MDL_RANGE_OUTSIDE_MEMORY));
  }
}

TEST_F(Librnicd, MovedFromMemoryIsEmptyAndHarmless) {
  const Client client = MustConnect();
  Memory memory = MustAllocate(client, kMiB);
  const Memory taken = std::move(memory);
  // NOLINTNEXTLINE(bugprone-use-after-move): that it was moved from is what is tested.
  EXPECT_TRUE(memory.bytes().empty());
  EXPECT_EQ(memory.id(), MemoryObjectId{});
  EXPECT_FALSE(memory.Entry(taken.bytes()).ok());
  EXPECT_FALSE(memory.Release().ok());
  EXPECT_EQ(UsedBy(client, "memory_objects"), 1u);
}

TEST_F(Librnicd, MemoryOutlivesTheClientAndKeepsTheSession) {
  std::optional<Client> client = MustConnect();
  Memory memory = MustAllocate(*client, kMiB);
  client.reset();
  EXPECT_EQ(AdminStatus(daemon()).sessions(), 1u);
  EXPECT_TRUE(memory.Release().ok());
  EXPECT_TRUE(memory.bytes().empty());
  EXPECT_EQ(AdminStatus(daemon()).sessions(), 0u);
}

TEST_F(Librnicd, ReleaseOfMemoryInUseIsRefusedAndChangesNothing) {
  const Client client = MustConnect();
  Memory memory = MustAllocate(client, kMiB);
  const MemoryRegion region = Must(MemoryRegion::Register(memory, 0));
  EXPECT_TRUE(FailedWith(memory.Release(), ErrorReason::MEMORY_IN_USE));
  EXPECT_EQ(memory.size(), kMiB);
  memory.bytes().back() = std::byte{1};
}

// --- regions ---

TEST_F(Librnicd, DeregisterKillsTokensAndCloseEndsTheRegion) {
  const Client client = MustConnect();
  const Memory memory = MustAllocate(client, kClientPage);
  MemoryRegion region = Must(MemoryRegion::Register(memory, 0));
  ASSERT_TRUE(region.Deregister().ok());
  EXPECT_FALSE(region.registered());
  EXPECT_EQ(region.remote_token().value, 0u);
  EXPECT_EQ(AdminStatus(daemon()).device_regions(), 0u);
  EXPECT_EQ(UsedBy(client, "regions"), 1u);
  ASSERT_TRUE(region.Close().ok());
  EXPECT_EQ(UsedBy(client, "regions"), 0u);
  EXPECT_TRUE(FailedWith(region.Close(), ErrorReason::OBJECT_NOT_FOUND));
  EXPECT_TRUE(FailedWith(region.Deregister(), ErrorReason::REGION_NOT_REGISTERED));
}

TEST_F(Librnicd, MovedRegionIsClosedOnce) {
  const Client client = MustConnect();
  const Memory memory = MustAllocate(client, kClientPage);
  MemoryRegion first = Must(MemoryRegion::Register(memory, 0));
  MemoryRegion second = Must(MemoryRegion::Register(memory, 0));
  EXPECT_EQ(UsedBy(client, "regions"), 2u);
  first = std::move(second);
  EXPECT_EQ(UsedBy(client, "regions"), 1u);
  // NOLINTNEXTLINE(bugprone-use-after-move): that it was moved from is what is tested.
  EXPECT_FALSE(second.registered());
  const MemoryRegion taken = std::move(first);
  EXPECT_TRUE(taken.registered());
  // NOLINTNEXTLINE(bugprone-use-after-move): that it was moved from is what is tested.
  EXPECT_FALSE(first.registered());
  EXPECT_EQ(UsedBy(client, "regions"), 1u);
}

TEST_F(Librnicd, RegionKeepsMemoryAndSessionWhenTheyGoFirst) {
  {
    std::optional<Client> client = MustConnect();
    std::optional<Memory> memory = MustAllocate(*client, kClientPage);
    const MemoryRegion region = Must(MemoryRegion::Register(*memory, 0));
    memory.reset();
    client.reset();
    const v1::GetStatusResponse status = AdminStatus(daemon());
    EXPECT_EQ(Used(status, "memory_objects"), 1u);
    EXPECT_EQ(status.device_regions(), 1u);
    EXPECT_EQ(status.sessions(), 1u);
  }
  const v1::GetStatusResponse status = AdminStatus(daemon());
  EXPECT_EQ(Used(status, "regions"), 0u);
  EXPECT_EQ(Used(status, "memory_objects"), 0u);
  EXPECT_EQ(status.sessions(), 0u);
}

TEST_F(Librnicd, ChainOfTwoMemoriesKeepsBoth) {
  const Client client = MustConnect();
  std::optional<Memory> one = MustAllocate(client, kMiB);
  std::optional<Memory> other = MustAllocate(client, kMiB);
  std::vector<MdlEntry> chain = {*one->Entry(one->bytes()), *other->Entry(other->bytes())};
  // In the region's addresses the second follows on the first, wherever it is mapped.
  chain[1].virtual_address.value = chain[0].virtual_address.value + kMiB;
  std::optional<MemoryRegion> region = Must(MemoryRegion::RegisterChain(client, chain, 2 * kMiB, 0));
  EXPECT_EQ(region->length(), 2 * kMiB);
  chain.clear();
  one.reset();
  other.reset();
  EXPECT_EQ(UsedBy(client, "memory_objects"), 2u);
  region.reset();
  EXPECT_EQ(UsedBy(client, "memory_objects"), 0u);
}

TEST_F(Librnicd, BatchRegistersEachPartAtItsPlace) {
  constexpr size_t kParts = 100;
  const Client client = MustConnect();
  const Memory memory = MustAllocate(client, kParts * kClientPage);
  const auto outcomes = MemoryRegion::RegisterBatch(memory, Parts(memory, kParts), kMrFlagLocalWrite);
  ASSERT_TRUE(outcomes.ok()) << outcomes.status();
  ASSERT_EQ(outcomes->size(), kParts);
  std::set<uint32_t> tokens;
  for (size_t index = 0; index < kParts; ++index) {
    const auto& outcome = (*outcomes)[index];
    ASSERT_TRUE(outcome.ok()) << outcome.status();
    tokens.insert(outcome->local_token().value);
    EXPECT_EQ(outcome->base_address().value, memory.address().value + index * kClientPage);
  }
  EXPECT_EQ(tokens.size(), kParts);
}

TEST_F(Librnicd, BatchNamesThePartThatLiesOutside) {
  const Client client = MustConnect();
  const Memory memory = MustAllocate(client, 3 * kClientPage);
  std::vector<std::span<const std::byte>> parts = Parts(memory, 3);
  parts[2] = {};
  EXPECT_EQ(ErrorInfoOf(MemoryRegion::RegisterBatch(memory, parts, 0).status()).field, "parts[2].part");
}

TEST_F(Librnicd, AsyncRegistrationThatDoesNotPendCallsBackBeforeReturning) {
  const Client client = MustConnect();
  const Memory memory = MustAllocate(client, kClientPage);
  int calls = 0;
  MemoryRegion::RegisterAsync(memory, memory.bytes(), 0, [&calls](const absl::StatusOr<MemoryRegion>& region) {
    ++calls;
    EXPECT_TRUE(region.ok() && region->registered());
  });
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(UsedBy(client, "regions"), 0u);
}

// --- regions whose registration pends ---

// An outcome that came, and whether it came by the event stream: on another thread than the caller's.
template <typename Outcome>
class Awaited {
 public:
  auto Callback() {
    return [this](Outcome outcome) {
      by_event_ = std::this_thread::get_id() != caller_;
      promise_.set_value(std::move(outcome));
    };
  }
  Outcome Get() {
    auto future = promise_.get_future();
    if (future.wait_for(kTimeout) != std::future_status::ready) {
      return Outcome(absl::DeadlineExceededError("no callback"));
    }
    return future.get();
  }
  bool by_event() const { return by_event_; }

 private:
  const std::thread::id caller_ = std::this_thread::get_id();
  std::promise<Outcome> promise_;
  bool by_event_ = false;
};

// All of the memory.
absl::StatusOr<MemoryRegion> RegisterByEvent(const Memory& memory) {
  Awaited<absl::StatusOr<MemoryRegion>> registered;
  MemoryRegion::RegisterAsync(memory, memory.bytes(), kMrFlagRemoteRead, registered.Callback());
  absl::StatusOr<MemoryRegion> region = registered.Get();
  EXPECT_TRUE(registered.by_event());
  return region;
}

class LibrnicdPending : public Librnicd {
 protected:
  explicit LibrnicdPending(std::vector<std::string> flags = {}) : Librnicd(AllPend(std::move(flags))) {}

 private:
  static std::vector<std::string> AllPend(std::vector<std::string> flags) {
    flags.emplace_back("--pending_threshold_bytes=4096");
    return flags;
  }
};

TEST_F(LibrnicdPending, RegistrationAndCloseCallBackByTheEventStream) {
  const Client client = MustConnect();
  const Memory memory = MustAllocate(client, kMiB);
  absl::StatusOr<MemoryRegion> region = RegisterByEvent(memory);
  ASSERT_TRUE(region.ok()) << region.status();
  EXPECT_EQ(region->length(), kMiB);
  EXPECT_NE(region->remote_token().value, 0u);
  Awaited<absl::Status> closed;
  MemoryRegion::CloseAsync(*std::move(region), closed.Callback());
  EXPECT_EQ(closed.Get(), absl::OkStatus());
  EXPECT_TRUE(closed.by_event());
  EXPECT_EQ(AdminStatus(daemon()).device_regions(), 0u);
  EXPECT_EQ(UsedBy(client, "regions"), 0u);
}

TEST_F(LibrnicdPending, CallbackMayCallTheDaemonAndDropTheLastOwnerOfTheSession) {
  for (int round = 0; round < 20; ++round) {
    std::optional<Client> client = MustConnect();
    std::optional<Memory> memory = MustAllocate(*client, kMiB);
    std::promise<absl::Status> called;
    MemoryRegion::RegisterAsync(*memory, memory->bytes(), 0, [&called](absl::StatusOr<MemoryRegion> region) {
      absl::Status outcome = region.status();
      outcome.Update(region.ok() ? region->Deregister() : absl::OkStatus());
      outcome.Update(region.ok() ? region->Close() : absl::OkStatus());
      called.set_value(outcome);
    });
    memory.reset();
    client.reset();
    EXPECT_EQ(called.get_future().get(), absl::OkStatus());
    // The callback's thread closes the session.
    EXPECT_TRUE(Eventually([&] { return AdminStatus(daemon()).sessions() == 0; }));
    EXPECT_EQ(Used(AdminStatus(daemon()), "memory_objects"), 0u);
  }
}

// With room for one registration, and without a probe that might have its place.
class LibrnicdFullCard : public LibrnicdPending {
 protected:
  LibrnicdFullCard() : LibrnicdPending({ProviderFlag("max_regions", 1), "--health_interval_ms=3600000"}) {}
};

TEST_F(LibrnicdFullCard, PendingRegistrationThatFailsCarriesItsReasonAndLeavesNoRegion) {
  const Client client = MustConnect();
  const Memory memory = MustAllocate(client, kClientPage);
  absl::StatusOr<MemoryRegion> only;
  // The probe of the start may still be under way.
  ASSERT_TRUE(Eventually([&] { return (only = MemoryRegion::Register(memory, 0)).ok(); })) << only.status();
  const absl::Status refused = RegisterByEvent(memory).status();
  EXPECT_TRUE(FailedWith(refused, ErrorReason::DEVICE_OUT_OF_RESOURCES)) << refused;
  EXPECT_EQ(UsedBy(client, "regions"), 1u);
}

class LibrnicdShortRegions : public LibrnicdPending {
 protected:
  LibrnicdShortRegions() : LibrnicdPending({ProviderFlag("max_registration_bytes", 4096)}) {}
};

TEST_F(LibrnicdShortRegions, RefusedRegistrationLeavesNoRegionAndCallsBackOnce) {
  const Client client = MustConnect();
  const Memory memory = MustAllocate(client, 2 * kClientPage);
  EXPECT_TRUE(FailedWith(MemoryRegion::Register(memory, 0).status(), ErrorReason::LENGTH_ABOVE_ADAPTER_LIMIT));
  EXPECT_EQ(UsedBy(client, "regions"), 0u);
  int calls = 0;
  MemoryRegion::RegisterAsync(memory, memory.bytes(), 0, [&calls](const absl::StatusOr<MemoryRegion>& region) {
    ++calls;
    EXPECT_TRUE(FailedWith(region.status(), ErrorReason::LENGTH_ABOVE_ADAPTER_LIMIT));
  });
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(UsedBy(client, "regions"), 0u);
}

TEST_F(LibrnicdShortRegions, ItemThatFailsDoesNotStopTheOthersAndLeavesNoRegion) {
  const Client client = MustConnect();
  const Memory memory = MustAllocate(client, 3 * kClientPage);
  std::vector<std::span<const std::byte>> parts = Parts(memory, 3);
  parts[1] = memory.bytes();
  const auto outcomes = MemoryRegion::RegisterBatch(memory, parts, 0);
  ASSERT_TRUE(outcomes.ok());
  EXPECT_TRUE((*outcomes)[0].ok());
  EXPECT_TRUE(FailedWith((*outcomes)[1].status(), ErrorReason::LENGTH_ABOVE_ADAPTER_LIMIT));
  EXPECT_TRUE((*outcomes)[2].ok());
  EXPECT_EQ(UsedBy(client, "regions"), 2u);
}

}  // namespace
}  // namespace rnicd::test
