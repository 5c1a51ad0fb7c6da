// Faults of the kernel's RDMA stack, on software cards: rxa and rxb of tests/vm. Run it in the guest.
#include <gtest/gtest.h>

#include <cstdlib>

int main(int argc, char** argv) {
  // This program always tests verbs, whatever provider the other suites run against.
  setenv("RNICD_TEST_PROVIDER", "verbs", /*overwrite=*/1);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
