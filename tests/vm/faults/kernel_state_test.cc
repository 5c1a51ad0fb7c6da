// Proves that a leak and a kernel error would be detected: every other test of this program relies on that.
#include "tests/vm/faults/kernel_state.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/process/wait.h"
#include "tests/vm/faults/foreign_peer.h"

namespace rnicd::test {
namespace {

TEST(KernelState, ShowsWhatAProcessHoldsUntilItsEnd) {
  {
    ForeignPeer peer;
    EXPECT_EQ(KernelObjectsOn("rxb"), (KernelObjects{{"mr", 2}, {"qp", 1}, {"cq", 2}, {"pd", 1}}))
        << Describe(AllKernelObjects());
    EXPECT_TRUE(KernelObjectsOn("rxa").empty());
    EXPECT_FALSE(AllKernelObjects().empty());
  }
  EXPECT_TRUE(Eventually([] { return AllKernelObjects().empty(); })) << Describe(AllKernelObjects());
}

TEST(KernelState, RecognisesKernelErrors) {
  EXPECT_TRUE(IsKernelError("4,1234,5678,-;WARNING: CPU: 1 PID: 99 at drivers/infiniband/sw/rxe/rxe_pool.c:187"));
  EXPECT_TRUE(IsKernelError("1,1,1,-;BUG: kernel NULL pointer dereference, address: 0000000000000000"));
  EXPECT_TRUE(IsKernelError("3,1,1,-;INFO: task rnicd:321 blocked for more than 120 seconds."));
  EXPECT_FALSE(IsKernelError("6,1,1,-;infiniband rxa: set down"));
  EXPECT_FALSE(IsKernelError("3,1,1,-;rdma_rxe: rxe_mr_init_user: Unable to pin memory region err = -12"));
}

}  // namespace
}  // namespace rnicd::test
