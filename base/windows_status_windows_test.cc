#include <gtest/gtest.h>
#include <windows.h>

#include "absl/strings/match.h"
#include "base/status.h"
#include "base/windows_status.h"

namespace rnicd {
namespace {

TEST(WindowsStatus, WantOfPagesOrHandlesIsTheNodesShortage) {
  for (const uint32_t error : {ERROR_NOT_ENOUGH_MEMORY, ERROR_COMMITMENT_LIMIT, ERROR_NO_SYSTEM_RESOURCES,
                               ERROR_WORKING_SET_QUOTA, ERROR_TOO_MANY_OPEN_FILES}) {
    EXPECT_TRUE(FailedWith(WindowsStatus("MapViewOfFile", error), ErrorReason::MEMORY_PAGES_UNAVAILABLE)) << error;
  }
}

TEST(WindowsStatus, AnyOtherErrorIsOurFault) {
  for (const uint32_t error : {ERROR_ACCESS_DENIED, ERROR_INVALID_HANDLE, ERROR_INVALID_PARAMETER, ERROR_SUCCESS}) {
    EXPECT_TRUE(FailedWith(WindowsStatus("MapViewOfFile", error), ErrorReason::INTERNAL_FAULT)) << error;
  }
}

TEST(WindowsStatus, TheMessageNamesTheCallAndTheError) {
  EXPECT_TRUE(absl::StrContains(WindowsStatus("MapViewOfFile", ERROR_COMMITMENT_LIMIT).message(),
                                "(MapViewOfFile: error 1455)"));
}

TEST(WindowsStatus, TheLastErrorIsThatOfTheThread) {
  SetLastError(ERROR_COMMITMENT_LIMIT);
  EXPECT_EQ(LastErrorStatus("MapViewOfFile"), WindowsStatus("MapViewOfFile", ERROR_COMMITMENT_LIMIT));
}

}  // namespace
}  // namespace rnicd
