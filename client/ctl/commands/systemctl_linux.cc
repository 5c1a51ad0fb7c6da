#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "absl/strings/str_join.h"
#include "base/files/unique_fd.h"
#include "client/ctl/commands/systemctl.h"

namespace rnicd::ctl {
namespace {

// Its standard output is `output`. 0 where it cannot be started.
pid_t StartSystemctl(std::vector<std::string>& command, int output) {
  std::vector<char*> arguments;
  for (std::string& argument : command) {
    arguments.push_back(argument.data());
  }
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  pid_t pid = 0;
  const int error = posix_spawnp(&pid, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  return error == 0 ? pid : 0;
}

std::string ReadAll(int file) {
  std::string text;
  std::array<char, 4096> bytes;
  for (ssize_t size = 1; size > 0 || (size < 0 && errno == EINTR);) {
    size = read(file, bytes.data(), bytes.size());
    text.append(bytes.data(), size > 0 ? static_cast<size_t>(size) : 0);
  }
  text.erase(text.find_last_not_of('\n') + 1);
  return text;
}

bool EndsWell(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

absl::StatusOr<std::string> Systemctl(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "systemctl");
  std::array<int, 2> ends = {-1, -1};
  pid_t pid = 0;
  if (pipe2(ends.data(), O_CLOEXEC) == 0) {
    pid = StartSystemctl(arguments, ends[1]);
  }
  const UniqueFd output(ends[0]);
  UniqueFd(ends[1]).Reset(-1);
  std::string printed = pid == 0 ? "" : ReadAll(output.get());
  if (pid == 0 || !EndsWell(pid)) {
    return absl::UnavailableError("'" + absl::StrJoin(arguments, " ") + "' " + (pid == 0 ? "cannot be run" : "failed"));
  }
  return printed;
}

}  // namespace rnicd::ctl
