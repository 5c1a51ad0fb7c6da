// The heap allocations of work requests on the way through core.

#include "base/system/counted_allocations_test.h"
#include "daemon/core/queue/queue_fixture_test.h"

namespace rnicd::core {
namespace {

constexpr uint32_t kChain = 32;

class PostAllocationTest : public ::testing::Test {
 protected:
  PostAllocationTest() {
    EXPECT_TRUE(owner_.session->Begin()->pairs().Connect(pair_, owner_.Address(pair_)).ok());
    for (uint32_t index = 0; index < kChain; ++index) {
      regions_.push_back(owner_.FastRegion(32));
    }
  }

  // Allocations of one Post of the chain, divided by its requests and rounded up.
  uint64_t AllocationsOf(const std::vector<WorkRequest>& chain) {
    const SessionGuard session = *owner_.session->Begin();
    const uint64_t before = counted_allocations;
    const bool posted = session.pairs().Post(pair_, chain)->posted == chain.size();
    const uint64_t after = counted_allocations;
    EXPECT_TRUE(posted);
    return (after - before + chain.size() - 1) / chain.size();
  }
  // The same for FastRegisters of these pages, one for each region, when the regions have been registered before. No
  // request reports a completion.
  uint64_t AllocationsOfRegistering(const std::vector<uint64_t>& pages) {
    std::vector<WorkRequest> registers;
    for (const MemoryRegionId region : regions_) {
      registers.push_back(FastRegister(region, pages, kOpFlagSilentSuccess));
    }
    AllocationsOf(registers);
    AllocationsOf(Invalidates());
    return AllocationsOf(registers);
  }
  std::vector<WorkRequest> Invalidates() const {
    std::vector<WorkRequest> invalidates;
    for (const MemoryRegionId region : regions_) {
      invalidates.push_back(Invalidate(region));
      invalidates.back().flags = kOpFlagSilentSuccess;
    }
    return invalidates;
  }

  World world_;
  QueueOwner owner_{world_};
  const QueuePairId pair_ = owner_.Pair({.domain = owner_.domain,
                                         .receive_queue = owner_.queue,
                                         .initiator_queue = owner_.queue,
                                         .limits = {.receive_depth = 1, .initiator_depth = 2 * kChain}});
  std::vector<MemoryRegionId> regions_;
  const std::vector<uint64_t> pages_ = PagesOf(owner_.Lam(owner_.Memory(32), 32));
};

// What the list of runs and the charges of a registration are kept in until it ends, and a part of the list of tokens.
TEST_F(PostAllocationTest, AFastRegisterOfPagesThatAdjoinMakesItsBacking) {
  EXPECT_LE(AllocationsOfRegistering(pages_), 2u);
}

// And its list of runs, which grows.
TEST_F(PostAllocationTest, AFastRegisterOfSixteenRunsAlsoMakesItsList) {
  std::vector<uint64_t> apart;
  for (size_t index = 0; index < pages_.size(); index += 2) {
    apart.push_back(pages_[index]);
  }
  EXPECT_LE(AllocationsOfRegistering(apart), 4u);
}

TEST_F(PostAllocationTest, AnInvalidateCostsNone) {
  AllocationsOfRegistering(pages_);
  EXPECT_EQ(AllocationsOf(Invalidates()), 0u);
}

}  // namespace
}  // namespace rnicd::core
