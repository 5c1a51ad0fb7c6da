#include "base/wall_time.h"

#include <gtest/gtest.h>

namespace rnicd {
namespace {

TEST(Rfc3339, IsInUtcWithMilliseconds) {
  EXPECT_EQ(Rfc3339(WallTime(std::chrono::milliseconds(1767323045678))), "2026-01-02T03:04:05.678Z");
  EXPECT_EQ(Rfc3339(WallTime(std::chrono::milliseconds(-1))), "1969-12-31T23:59:59.999Z");
}

}  // namespace
}  // namespace rnicd
