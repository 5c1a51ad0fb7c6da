#include "daemon/sandbox/dumps.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "daemon/sandbox/sandboxed_child_test.h"

namespace rnicd::sandbox {
namespace {

TEST(Dumps, ThereAreNone) {
  const ChildEnd end = InSandbox({.filter = SystemCallFilter::kOff}, [](int) {
    rlimit limit = {.rlim_cur = 1, .rlim_max = 1};
    getrlimit(RLIMIT_CORE, &limit);
    return limit.rlim_cur == 0 && limit.rlim_max == 0 && prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0 ? 0 : 1;
  });
  EXPECT_EQ(end.exit_code, 0) << end.output << " signal " << end.signal;
}

// /proc belongs to root for such a process, also where its user is another one.
TEST(Dumps, TheProcessStillReadsItself) {
  const ChildEnd end =
      Child([](int pipe) {
        constexpr uid_t kNobody = 65534;
        if (geteuid() == 0 && (setgid(kNobody) != 0 || setuid(kNobody) != 0)) {
          return kDidNotEnter;
        }
        EnterOrExit({}, pipe);
        std::error_code error;
        for (const char* const folder : {"/proc/self/fd", "/proc/self/task", "/proc/self/fdinfo"}) {
          if (std::filesystem::directory_iterator(folder, error) == std::filesystem::directory_iterator()) {
            return 1;
          }
        }
        for (const char* const name : {"stat", "statm", "status", "cgroup", "maps"}) {
          std::string line;
          if (!std::getline(std::ifstream(std::string("/proc/self/") + name), line)) {
            WriteText(pipe, name);
            return 2;
          }
        }
        std::string word;
        std::ifstream("/proc/self/fdinfo/" + std::to_string(pipe)) >> word;
        return word == "pos:" ? 0 : 3;
      }).End();
  EXPECT_EQ(end.exit_code, 0) << end.output << " signal " << end.signal;
}

}  // namespace
}  // namespace rnicd::sandbox
