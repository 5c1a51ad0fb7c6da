#include "base/system/this_process.h"

#include <sys/wait.h>
#include <unistd.h>

#include "gtest/gtest.h"

namespace rnicd {
namespace {

TEST(ProcessMark, IsTheProcessAlsoWhenAskedAgain) {
  EXPECT_EQ(ProcessId(), getpid());
  EXPECT_EQ(ProcessId(), getpid());
}

TEST(ProcessMark, AChildDoesNotInheritIt) {
  ASSERT_EQ(ProcessId(), getpid());
  const pid_t child = fork();
  if (child == 0) {
    _exit(ProcessId() == getpid() ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace rnicd
