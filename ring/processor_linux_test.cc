#include <gtest/gtest.h>

#include <thread>

#include "ring/processor.h"

namespace rnicd::ring {
namespace {

TEST(ProcessorTest, AThreadMovesAlone) {
  const Processors allowed = AllowedProcessors();
  ASSERT_TRUE(allowed.any());
  Processors last;
  for (size_t number = 0; number < allowed.size(); ++number) {
    if (allowed[number]) {
      last.reset().set(number);
    }
  }
  std::thread([&last] {
    RunOn(last);
    EXPECT_EQ(AllowedProcessors(), last);
    EXPECT_TRUE(last[CurrentCpu() - 1]);
    // Nobody can run nowhere.
    RunOn({});
    EXPECT_EQ(AllowedProcessors(), last);
  }).join();
  EXPECT_EQ(AllowedProcessors(), allowed);
}

}  // namespace
}  // namespace rnicd::ring
