// The heap allocations of requests in the engine and the soft card.

#include <gtest/gtest.h>

#include <vector>

#include "base/secrets/random.h"
#include "base/system/counted_allocations_test.h"
#include "provider/api/requests_test.h"
#include "provider/soft/soft_provider.h"

namespace rnicd::provider {
namespace {

constexpr size_t kChain = 32;

class CountingListener final : public QueuePairListener {
 public:
  void OnCompletion(WorkQueue /*queue*/, const Completion& completion) override {
    failures += completion.status == NtStatus::kSuccess ? 0 : 1;
    ++completions;
  }
  void OnPeerDisconnected() override {}

  uint64_t completions = 0;
  uint64_t failures = 0;
};

class AllocationTest : public ::testing::Test {
 protected:
  AllocationTest() { EXPECT_TRUE(pair_->Connect(pair_->address()).ok()); }

  // Allocations of making, posting, executing and reporting the requests that `make` returns for a number, in steady
  // state. `backing` of a FastRegisterWork is its maker's and is allocated before.
  template <typename Make>
  uint64_t AllocationsOf(const Make& make, size_t requests = kChain) {
    PostAll(make, requests);
    const uint64_t before = counted_allocations;
    PostAll(make, requests);
    const uint64_t after = counted_allocations;
    EXPECT_EQ(listener_.completions, 2 * requests);
    EXPECT_EQ(listener_.failures, 0u);
    return after - before;
  }
  template <typename Make>
  void PostAll(const Make& make, size_t requests) {
    bool accepted = true;
    for (size_t index = 0; index < requests; ++index) {
      accepted = pair_->Enqueue(make(index)).ok() && accepted;
    }
    pair_->Kick();
    EXPECT_TRUE(accepted);
  }
  Entries HostEntries(size_t count) {
    Entries entries;
    for (size_t index = 0; index < count; ++index) {
      entries.push_back({.host = std::span(bytes_).subspan(8 * index, 8), .length = 8});
    }
    return entries;
  }
  // Segments of the region.
  Entries RegionEntries(size_t count) {
    Entries entries;
    for (size_t index = 0; index < count; ++index) {
      entries.push_back({.address = {kSideBase + 8 * index}, .length = 8, .token = region_->local_token()});
    }
    return entries;
  }
  uint64_t AllocationsOfRegistering(size_t runs) {
    std::vector<std::byte> pages(2 * runs * kNdkPageBytes);
    const auto list = std::make_shared<RunList>();
    for (size_t run = 0; run < runs; ++run) {
      list->runs.push_back(std::span(pages).subspan(2 * run * kNdkPageBytes, kNdkPageBytes));
    }
    const auto region = *domain_->CreateFastRegion(16, true);
    return AllocationsOf([&](size_t index) {
      return index % 2 != 0 ? Invalidate(index, region) : FastRegister(index, region, list, runs * kNdkPageBytes);
    });
  }

  KernelRandom random_;
  SoftProvider provider_{{}, random_};
  std::vector<std::byte> bytes_ = std::vector<std::byte>(kNdkPageBytes);
  const std::span<std::byte> run_{bytes_};
  CountingListener listener_;
  std::unique_ptr<DeviceAdapter> adapter_ = *provider_.OpenAdapter("soft0");
  std::unique_ptr<DeviceProtectionDomain> domain_ = *adapter_->CreateProtectionDomain();
  std::unique_ptr<DeviceMemoryRegion> region_ = *domain_->RegisterMemory(
      {.base = {kSideBase}, .length = kNdkPageBytes, .runs = {&run_, 1}, .rights = kAllRights});
  std::unique_ptr<DeviceCompletionQueue> queue_ = *adapter_->CreateCompletionQueue(16);
  std::unique_ptr<DeviceQueuePair> pair_ =
      *domain_->CreateQueuePair({.receive_depth = 64, .initiator_depth = 64}, *queue_, *queue_, listener_);
};

TEST_F(AllocationTest, AWriteOfFourSegmentsCostsNone) {
  EXPECT_EQ(AllocationsOf([this](size_t index) { return Write(index, RegionEntries(4), region_->remote_token()); }),
            0u);
}

TEST_F(AllocationTest, AReadOfFourSegmentsCostsNone) {
  EXPECT_EQ(AllocationsOf([this](size_t index) { return Read(index, RegionEntries(4), region_->remote_token()); }), 0u);
}

TEST_F(AllocationTest, SendsAndReceivesOfFourSegmentsCostNone) {
  EXPECT_EQ(AllocationsOf([this](size_t index) {
              return index % 2 == 0 ? Receive(index, HostEntries(4)) : Send(index, HostEntries(4));
            }),
            0u);
}

TEST_F(AllocationTest, InlineDataInThePlaceOfFourSegmentsCostsNone) {
  EXPECT_EQ(AllocationsOf([this](size_t index) {
              WorkRequest write = Write(index, {}, region_->remote_token());
              write.payload = InlineData(4 * sizeof(ScatterGatherEntry));
              return write;
            }),
            0u);
}

TEST_F(AllocationTest, AFastRegistrationOfOneRunAndItsInvalidationCostNone) {
  EXPECT_EQ(AllocationsOfRegistering(1), 0u);
}

TEST_F(AllocationTest, AFastRegistrationOfSixteenRunsAndItsInvalidationCostNone) {
  EXPECT_EQ(AllocationsOfRegistering(16), 0u);
}

}  // namespace
}  // namespace rnicd::provider
