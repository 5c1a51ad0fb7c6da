#include "daemon/app/host/privileges_windows.h"

#include <gtest/gtest.h>
#include <windows.h>

#include <vector>

#include "base/files/unique_fd.h"

namespace rnicd::app {
namespace {

DWORD PrivilegesLeft() {
  HANDLE raw = nullptr;
  EXPECT_NE(OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &raw), 0);
  const UniqueFd token(HandleToLong(raw));
  DWORD bytes = 0;
  GetTokenInformation(raw, TokenPrivileges, nullptr, 0, &bytes);
  std::vector<TOKEN_PRIVILEGES> privileges(bytes / sizeof(TOKEN_PRIVILEGES) + 1);
  bytes = static_cast<DWORD>(privileges.size() * sizeof(TOKEN_PRIVILEGES));
  EXPECT_NE(GetTokenInformation(raw, TokenPrivileges, privileges.data(), bytes, &bytes), 0);
  return privileges.front().PrivilegeCount;
}

// A privilege that was removed cannot come back, so this is about the whole program.
TEST(Privileges, OnlyThoseInUseAreKept) {
  const DWORD before = PrivilegesLeft();
  const auto removed = RemovePrivileges();
  ASSERT_TRUE(removed.ok()) << removed.status();
  EXPECT_EQ(PrivilegesLeft(), before - *removed);
  EXPECT_LE(PrivilegesLeft(), 3u);
  const auto again = RemovePrivileges();
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, 0u);
}

TEST(Privileges, ForeignCodeIsForbiddenForEver) {
  const absl::Status forbidden = ForbidForeignCode();
  EXPECT_TRUE(forbidden.ok()) << forbidden;
}

}  // namespace
}  // namespace rnicd::app
