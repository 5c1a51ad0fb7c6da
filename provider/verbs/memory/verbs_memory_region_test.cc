// Registrations by owners: the calls to the card, the meaning of its refusals, and the objects left afterwards.

#include "provider/verbs/memory/verbs_memory_region.h"

#include <sys/mman.h>

#include <fstream>

#include "provider/verbs/card/verbs_status.h"
#include "provider/verbs/fake/verbs_fixture_test.h"

namespace rnicd::provider {
namespace {

using ::testing::SizeIs;

// Number of mappings of memory files in this process; the allocator's mappings do not count.
size_t Mappings() {
  std::ifstream maps("/proc/self/maps");
  size_t lines = 0;
  for (std::string line; std::getline(maps, line);) {
    lines += line.find("/memfd:") != std::string::npos ? 1 : 0;
  }
  return lines;
}

class VerbsMemoryRegionTest : public VerbsTest {
 protected:
  explicit VerbsMemoryRegionTest(const VerbsOptions& options = QuietOptions()) : VerbsTest(options) {}

  absl::StatusOr<std::unique_ptr<DeviceMemoryRegion>> Register(std::vector<std::span<std::byte>> runs,
                                                               const AccessRights& rights = kAllRights,
                                                               uint64_t base = Side::kBase) {
    uint64_t length = 0;
    for (const std::span<std::byte> run : runs) {
      length += run.size();
    }
    return domain_->RegisterMemory({.base = {base}, .length = length, .runs = runs, .rights = rights});
  }

  const std::unique_ptr<DeviceAdapter> adapter_ = *daemon_.provider().OpenAdapter("fake0");
  const std::unique_ptr<DeviceProtectionDomain> domain_ = *adapter_->CreateProtectionDomain();
  SharedPages pages_{8};
};

TEST_F(VerbsMemoryRegionTest, EveryRightIsABitOfTheCard) {
  const struct {
    AccessRights rights;
    int access;
  } kRows[] = {
      {{}, 0},
      {{.local_write = true}, IBV_ACCESS_LOCAL_WRITE},
      {{.remote_read = true}, IBV_ACCESS_REMOTE_READ},
      {{.remote_write = true}, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE},
      {{.local_write = true, .read_sink = true}, IBV_ACCESS_LOCAL_WRITE},
      {kAllRights, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE},
  };
  for (const auto& row : kRows) {
    auto region = Register({pages_.page(0)}, row.rights);
    ASSERT_TRUE(region.ok()) << region.status();
    EXPECT_EQ(fake_.regions().back().access, row.access);
    EXPECT_EQ(AccessFlags(row.rights), row.access);
  }
}

TEST_F(VerbsMemoryRegionTest, ItLiesAtItsOwnersAddressUnderTheKeysOfTheCard) {
  constexpr uint64_t kOdd = 0x7fff00000123;
  auto region = Register({pages_.bytes().subspan(0x123, 5000)}, kAllRights, kOdd);
  ASSERT_TRUE(region.ok()) << region.status();
  const FakeRegion made = fake_.regions().back();
  EXPECT_EQ(made.iova, kOdd);
  EXPECT_EQ(made.address, pages_.bytes().data() + 0x123);
  EXPECT_EQ(made.length, 5000u);
  EXPECT_EQ((*region)->local_token().value, made.lkey);
  EXPECT_EQ((*region)->remote_token().value, made.rkey);
  EXPECT_NE((*region)->local_token(), domain_->privileged_token());
}

TEST_F(VerbsMemoryRegionTest, ScatteredRunsBecomeOneRegistrationAndLeaveNoMapping) {
  for (const size_t number : {1u, 3u, 6u}) {
    pages_.page(number)[0] = static_cast<std::byte>(number);
  }
  std::vector<int> seen;
  size_t mappings_meanwhile = 0;
  fake_.on_register = [&](const FakeRegion& region) {
    mappings_meanwhile = Mappings();
    const auto* const bytes = static_cast<const std::byte*>(region.address);
    for (uint64_t offset = 0; offset < region.length; offset += kPage) {
      seen.push_back(static_cast<int>(bytes[offset]));
    }
  };
  const size_t mappings = Mappings();
  auto region = Register({pages_.page(6), pages_.page(1), pages_.page(3), pages_.page(6).first(10)});
  ASSERT_TRUE(region.ok()) << region.status();
  EXPECT_THAT(seen, ::testing::ElementsAre(6, 1, 3, 6));
  EXPECT_EQ(fake_.regions().back().length, 3 * kPage + 10);
  EXPECT_GT(mappings_meanwhile, mappings);
  EXPECT_EQ(Mappings(), mappings) << "the card holds the pages";
  fake_.on_register = nullptr;
}

TEST_F(VerbsMemoryRegionTest, MemoryThatCannotBeMappedTwiceIsRefusedWhenItIsScattered) {
  void* const memory = mmap(nullptr, 4 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  const std::span<std::byte> bytes(static_cast<std::byte*>(memory), 4 * kPage);
  const uint64_t live = daemon_.provider().live_regions();
  EXPECT_TRUE(Register({bytes}).ok()) << "contiguous memory needs no second mapping";
  EXPECT_TRUE(FailedWith(Register({bytes.subspan(2 * kPage, kPage), bytes.first(kPage)}).status(),
                         ErrorReason::DEVICE_NOT_CAPABLE));
  EXPECT_EQ(daemon_.provider().live_regions(), live);
  munmap(memory, 4 * kPage);
}

TEST_F(VerbsMemoryRegionTest, ARegionThatTheCardKeepsStaysAsItWas) {
  Side side(daemon_);
  ASSERT_TRUE(side.ConnectTo(side).ok());
  const LocalToken token = side.region()->local_token();
  fake_.FailNext("DeregMr", EBUSY);
  EXPECT_TRUE(FailedWith(side.region()->Deregister(), ErrorReason::DEVICE_FAILED));
  EXPECT_EQ(side.region()->local_token(), token);
  EXPECT_EQ(daemon_.provider().live_regions(), 1u);
  side.Post(Write(1, {side.Entry(0, 8)}, {7}));
  EXPECT_THAT(side.posted(), SizeIs(1)) << "its token still works";
  const auto window = *side.domain().CreateMemoryWindow();
  ASSERT_TRUE(fake_.Complete(side.number()));
  ASSERT_TRUE(side.Initiated(1));
  side.Post(Bind(2, window, side.region()));
  ASSERT_TRUE(side.Initiated(2));
  EXPECT_EQ(side.initiated()[1].status, kOk) << "and it may be bound";
  window->Retire();
  EXPECT_TRUE(side.region()->Deregister().ok());
}

TEST_F(VerbsMemoryRegionTest, EachErrorOfTheCardHasItsReason) {
  const struct {
    int error;
    ErrorReason reason;
  } kRows[] = {
      {EFAULT, ErrorReason::MEMORY_NOT_PINNABLE},     {EPERM, ErrorReason::DEVICE_MEMLOCK_LIMIT},
      {ENOSPC, ErrorReason::DEVICE_OUT_OF_RESOURCES}, {EAGAIN, ErrorReason::DEVICE_OUT_OF_RESOURCES},
      {EOPNOTSUPP, ErrorReason::DEVICE_NOT_CAPABLE},  {EINVAL, ErrorReason::DEVICE_FAILED},
      {ENODEV, ErrorReason::DEVICE_REMOVED},          {EIO, ErrorReason::DEVICE_REMOVED},
  };
  for (const auto& row : kRows) {
    fake_.FailNext("RegMr", row.error);
    const absl::Status refused = Register({pages_.page(4), pages_.page(0)}).status();
    EXPECT_TRUE(FailedWith(refused, row.reason)) << row.error << ": " << refused;
  }
  EXPECT_EQ(daemon_.provider().live_regions(), 0u);
}

// ENOMEM means the limit of this process or of the card; the process's own limit distinguishes the two.
TEST_F(VerbsMemoryRegionTest, ACardWithoutRoomAndALimitOfTheProcessAreTwoThings) {
  const PinBudget budget = ReadPinBudget();
  const bool limited = !budget.unlimited && budget.free_bytes < kPage;
  fake_.FailNext("RegMr", ENOMEM);
  EXPECT_TRUE(FailedWith(Register({pages_.page(0)}).status(),
                         limited ? ErrorReason::DEVICE_MEMLOCK_LIMIT : ErrorReason::DEVICE_OUT_OF_RESOURCES));
}

class VerbsRegionCapTest : public VerbsMemoryRegionTest {
 protected:
  VerbsRegionCapTest() : VerbsMemoryRegionTest(Capped()) {}
  static VerbsOptions Capped() {
    VerbsOptions options = QuietOptions();
    options.max_regions = 2;
    return options;
  }
};

TEST_F(VerbsRegionCapTest, ThereAreNoMoreRegistrationsThanTheOptionsAllow) {
  auto first = Register({pages_.page(0)});
  auto second = domain_->CreateFastRegion(4, true);
  ASSERT_TRUE(first.ok() && second.ok());
  const uint64_t asked = fake_.calls("RegMr");
  EXPECT_TRUE(FailedWith(Register({pages_.page(1)}).status(), ErrorReason::DEVICE_OUT_OF_RESOURCES));
  EXPECT_TRUE(FailedWith(domain_->CreateFastRegion(4, true).status(), ErrorReason::DEVICE_OUT_OF_RESOURCES));
  EXPECT_EQ(fake_.calls("RegMr"), asked) << "the card is not even asked";
  EXPECT_EQ(daemon_.provider().live_regions(), 2u);
  first->reset();
  EXPECT_TRUE(Register({pages_.page(1)}).ok());
}

// --- bytes of this process in a payload ---

class VerbsPayloadTest : public VerbsTest {
 protected:
  VerbsPayloadTest() { EXPECT_TRUE(side_.ConnectTo(side_).ok()); }
  static ScatterGatherEntry Host(std::span<std::byte> bytes) {
    return {.host = bytes, .length = static_cast<uint32_t>(bytes.size())};
  }

  Side side_{daemon_};
  SharedPages pages_{8};
};

TEST_F(VerbsPayloadTest, HostBytesAreRegisteredUntilTheirRequestIsComplete) {
  const size_t regions = fake_.regions().size();
  side_.Post(Send(1, {Host(pages_.page(0).first(100)), side_.Entry(8, 4), Host(pages_.page(2).subspan(7, 3))}));
  EXPECT_THAT(fake_.regions(), SizeIs(regions + 2));
  ASSERT_THAT(side_.posted(), SizeIs(1));
  const std::vector<ibv_sge> entries = side_.posted()[0].entries;
  ASSERT_THAT(entries, SizeIs(3));
  EXPECT_EQ(entries[0].length, 100u);
  EXPECT_EQ(entries[2].length, 3u);
  std::atomic<size_t> left = 0;
  side_.listener().on_completion = [&](const Completion&) { left = fake_.regions().size(); };
  ASSERT_TRUE(fake_.Complete(side_.number()));
  ASSERT_TRUE(side_.Initiated(1));
  EXPECT_EQ(left, regions) << "let go of before the completion is reported";
}

TEST_F(VerbsPayloadTest, HostBytesOfAReceiveAreWrittenThroughTheirOwnKey) {
  const size_t regions = fake_.regions().size();
  side_.Post(Receive(10, {Host(pages_.page(0).first(100))}));
  EXPECT_THAT(fake_.regions(), SizeIs(regions + 1));
  ASSERT_TRUE(fake_.Receive(side_.number(), 100));
  ASSERT_TRUE(side_.Received(1));
  EXPECT_EQ(side_.received()[0].status, kOk);
  EXPECT_THAT(fake_.regions(), SizeIs(regions));
}

TEST_F(VerbsPayloadTest, HostBytesThatLieEndToEndAreOnePiece) {
  const size_t regions = fake_.regions().size();
  side_.Post(Send(1, {Host(pages_.bytes().first(100)), Host(pages_.bytes().subspan(100, 50))}));
  EXPECT_THAT(fake_.regions(), SizeIs(regions + 1));
  ASSERT_THAT(side_.posted()[0].entries, SizeIs(1));
  EXPECT_EQ(side_.posted()[0].entries[0].length, 150u);
}

TEST_F(VerbsPayloadTest, ScatteredPagesOfHostBytesFitIntoFewerEntriesThanThereAreRuns) {
  Entries entries;
  for (size_t page = 0; page < 8; page += 2) {
    entries.push_back(Host(pages_.page(page)));
  }
  side_.Post(Write(1, entries, {7}));
  ASSERT_THAT(side_.posted(), SizeIs(1));
  ASSERT_THAT(side_.posted()[0].entries, SizeIs(1));
  EXPECT_EQ(side_.posted()[0].entries[0].length, 4 * kPage);
  ASSERT_TRUE(fake_.Complete(side_.number()));
  ASSERT_TRUE(side_.Initiated(1));
  EXPECT_EQ(side_.initiated()[0].status, kOk);
}

// As pages of 2 MiB, of which the kernel gives no second mapping.
TEST_F(VerbsPayloadTest, HostBytesThatCannotBeComposedTravelAsEntriesOfTheirOwn) {
  void* const memory = mmap(nullptr, 4 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  const std::span<std::byte> bytes(static_cast<std::byte*>(memory), 4 * kPage);
  const absl::Status status =
      side_.pair().Enqueue(Write(1, {Host(bytes.first(kPage)), Host(bytes.subspan(2 * kPage, kPage))}, {7})).status();
  side_.pair().Kick();
  EXPECT_TRUE(status.ok()) << status;
  side_.Shutdown();
  munmap(memory, 4 * kPage);
}

TEST_F(VerbsPayloadTest, ARefusedPayloadLeavesNothing) {
  const size_t regions = fake_.regions().size();
  fake_.FailNext("RegMr", EFAULT, 1, /*skip=*/1);
  EXPECT_TRUE(side_.Refuses(Send(1, {Host(pages_.page(0).first(10)), Host(pages_.page(2).first(10))}),
                            ErrorReason::MEMORY_NOT_PINNABLE));
  EXPECT_THAT(fake_.regions(), SizeIs(regions));
  side_.Post(Send(2, {Host(pages_.page(0).first(10))}));
  side_.pair().Flush();
  ASSERT_TRUE(side_.Initiated(1));
  EXPECT_THAT(fake_.regions(), SizeIs(regions));
}

}  // namespace
}  // namespace rnicd::provider
