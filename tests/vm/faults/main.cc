// The faults of a kernel's RDMA stack, on cards in software: rxa and rxb of tests/vm. Run it in the guest.
#include <gtest/gtest.h>

#include <cstdlib>

int main(int argc, char** argv) {
  // Whatever the suites are run against otherwise, this program is about verbs.
  setenv("RNICD_TEST_PROVIDER", "verbs", /*overwrite=*/1);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
