// Counts the heap allocations of requests. Replaces operator new in this program; the memory still comes from malloc,
// so that sanitizers see it.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <vector>

#include "base/random.h"
#include "provider/api/requests_test.h"
#include "provider/soft/soft_provider.h"

namespace {
std::atomic<uint64_t> allocations{0};
}  // namespace

void* operator new(size_t bytes) {
  ++allocations;
  if (void* const memory = std::malloc(bytes == 0 ? 1 : bytes); memory != nullptr) {
    return memory;
  }
  throw std::bad_alloc();
}
void* operator new[](size_t bytes) { return operator new(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t /*bytes*/) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t /*bytes*/) noexcept { std::free(memory); }

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

  // Allocations of posting a chain and executing it.
  uint64_t AllocationsOf(std::vector<WorkRequest> chain) {
    const uint64_t before = allocations;
    for (WorkRequest& request : chain) {
      EXPECT_TRUE(pair_->Enqueue(std::move(request)).ok());
    }
    pair_->Ring();
    return allocations - before;
  }
  Entries HostEntries(size_t count) {
    Entries entries;
    for (size_t index = 0; index < count; ++index) {
      entries.push_back({.host = std::span(bytes_).subspan(8 * index, 8), .length = 8});
    }
    return entries;
  }

  KernelRandom random_;
  SoftProvider provider_{{}, random_};
  std::vector<std::byte> bytes_ = std::vector<std::byte>(kNdkPageBytes);
  CountingListener listener_;
  std::unique_ptr<DeviceAdapter> adapter_ = *provider_.OpenAdapter("soft0");
  std::unique_ptr<DeviceProtectionDomain> domain_ = *adapter_->CreateProtectionDomain();
  std::unique_ptr<DeviceCompletionQueue> queue_ = *adapter_->CreateCompletionQueue(16);
  std::unique_ptr<DeviceQueuePair> pair_ =
      *domain_->CreateQueuePair({.receive_depth = 64, .initiator_depth = 64}, *queue_, *queue_, listener_);
};

TEST_F(AllocationTest, RequestsUseTheMemoryOfEarlierOnes) {
  const auto chain = [] {
    std::vector<WorkRequest> requests;
    for (size_t index = 0; index < kChain; ++index) {
      requests.push_back(Receive(index));
      requests.push_back(Send(index));
      requests.push_back(Write(index));
    }
    return requests;
  };
  AllocationsOf(chain());
  EXPECT_EQ(AllocationsOf(chain()), 0u);
  EXPECT_EQ(listener_.completions, 6 * kChain);
  EXPECT_EQ(listener_.failures, 0u);
}

TEST_F(AllocationTest, FourSegmentsCostNoAllocation) {
  const auto chain = [this] {
    std::vector<WorkRequest> requests;
    for (size_t index = 0; index < kChain / 2; ++index) {
      requests.push_back(Receive(index, HostEntries(4)));
      requests.push_back(Send(index, HostEntries(4)));
    }
    return requests;
  };
  AllocationsOf(chain());
  EXPECT_EQ(AllocationsOf(chain()), 0u);
  EXPECT_EQ(listener_.failures, 0u);
}

TEST_F(AllocationTest, AFastRegistrationOfSixteenRunsUsesTheMemoryOfTheLast) {
  const auto region = *domain_->CreateFastRegion(16, true);
  std::vector<std::byte> pages(32 * kNdkPageBytes);
  const auto chain = [&] {
    std::vector<WorkRequest> requests;
    for (size_t index = 0; index < kChain / 2; ++index) {
      std::vector<std::span<std::byte>> runs;
      for (size_t run = 0; run < 16; ++run) {
        runs.push_back(std::span(pages).subspan(2 * run * kNdkPageBytes, kNdkPageBytes));
      }
      requests.push_back(FastRegister(index, region, std::move(runs)));
      requests.push_back(Invalidate(index, region));
    }
    return requests;
  };
  AllocationsOf(chain());
  EXPECT_EQ(AllocationsOf(chain()), 0u);
  EXPECT_EQ(listener_.failures, 0u);
}

}  // namespace
}  // namespace rnicd::provider
