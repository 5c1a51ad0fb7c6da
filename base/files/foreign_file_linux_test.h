#pragma once

// What the tests of safe files share: a file that another user could have written.

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

namespace rnicd {

// Lets another user write the file, and returns the expected cause of the refusal. Root changes the owner; any other
// user may not, and makes the file writable for all.
inline std::string LetAnotherUserWrite(const std::string& path) {
  constexpr uid_t kNobody = 65534;
  if (chown(path.c_str(), kNobody, static_cast<gid_t>(-1)) == 0) {
    return "is owned by uid 65534, which is neither root nor the user of this process";
  }
  EXPECT_EQ(chmod(path.c_str(), 0666), 0) << path;
  return "is writable by group or others";
}

}  // namespace rnicd
