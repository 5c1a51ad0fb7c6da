#include "daemon/app/host/page_size.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/system/os.h"
#include "base/units.h"

namespace rnicd::app {
namespace {

using ::testing::HasSubstr;

TEST(PageSize, OnlyOtherPagesThanThoseOfNdkAreWorthAWarning) {
  EXPECT_FALSE(WarnOfKernelPages(kNdkPageBytes).has_value());
  for (const uint64_t bytes : {16384, 65536}) {
    EXPECT_THAT(WarnOfKernelPages(bytes).value_or(""), HasSubstr(std::to_string(bytes) + " bytes"));
  }
}

TEST(PageSize, ThisKernelIsOneThatTheTestsCanJudge) { EXPECT_EQ(SystemOs().page_bytes(), kNdkPageBytes); }

}  // namespace
}  // namespace rnicd::app
