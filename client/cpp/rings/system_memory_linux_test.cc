#include "client/cpp/rings/system_memory.h"

#include <sys/wait.h>
#include <unistd.h>

#include "gtest/gtest.h"

namespace rnicd::inline client {
namespace {

TEST(ProcessMark, IsTheProcessAlsoWhenAskedAgain) {
  EXPECT_EQ(ThisProcess(), getpid());
  EXPECT_EQ(ThisProcess(), getpid());
}

TEST(ProcessMark, AChildDoesNotInheritIt) {
  ASSERT_EQ(ThisProcess(), getpid());
  const pid_t child = fork();
  if (child == 0) {
    _exit(ThisProcess() == getpid() ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace rnicd::inline client
