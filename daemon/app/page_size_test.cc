#include "daemon/app/page_size.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

namespace rnicd::app {
namespace {

TEST(PageSize, OtherPagesThanThoseOfNdkAreRefused) {
  EXPECT_TRUE(RequireNdkPages(4096).ok());
  const absl::Status refused = RequireNdkPages(65536);
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()), testing::HasSubstr("65536 bytes"));
}

TEST(PageSize, ThisKernelIsOneThatTheTestsCanJudge) {
  EXPECT_TRUE(RequireNdkPages(static_cast<uint64_t>(sysconf(_SC_PAGESIZE))).ok());
}

}  // namespace
}  // namespace rnicd::app
