#pragma once

#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/files/unique_fd.h"
#include "tests/support/process/pipe_reader.h"
#include "tests/support/process/wait.h"

namespace rnicd::test {

// The users that workloads run as in these tests. Without root every process runs as the current user and TwoUids() is
// false: a test then asserts what holds with one user.
bool TwoUids();
uint32_t WorkloadUid();
uint32_t OtherUid();

// How a process ended.
struct ProcessEnd {
  // Exit code; -1 if a signal ended the process.
  int exit_code = -1;
  // Signal that ended the process; 0 if it exited.
  int signal = 0;
};

struct ChildOptions {
  std::vector<std::string> command;
  // User of the child, without supplementary groups or capabilities. Absent: the user of this process.
  std::optional<uint32_t> uid;
  // RLIMIT_NOFILE; 0 means the limit of this process.
  uint64_t descriptors_max = 0;
  // A command that becomes the other one, whose words are its last arguments: prlimit, or a shell with "exec".
  std::vector<std::string> wrapper;
  // Descriptor that is the child's stderr instead of a pipe to errors(). Only on Linux.
  std::optional<int> stderr_file;
};

// A process of another program, with pipes on its three standard streams.
// Starts without fork(), which a process that has used gRPC does not survive. The kernel kills the child when the
// thread that started it ends, so that nothing outlives a crashed test.
// Lifetime: the destructor kills and reaps the process.
class ChildProcess {
 public:
  static absl::StatusOr<std::unique_ptr<ChildProcess>> Start(const ChildOptions& options);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  PipeReader& output() { return *output_; }
  PipeReader& errors() { return *errors_; }

  // False if the child has closed its input.
  bool WriteLine(std::string_view line);
  void CloseInput() { input_.Reset(-1); }
  void Signal(int signal) const;
  // Stops the child by SIGSTOP and waits until it has stopped; false on timeout.
  bool StopAndWait() const;
  // Nullopt if the child has not ended within `limit`. May be called again.
  std::optional<ProcessEnd> WaitForEnd(std::chrono::milliseconds limit = kTimeout);
  bool running() { return !WaitForEnd(std::chrono::milliseconds(0)).has_value(); }

 private:
  ChildProcess() = default;

  pid_t pid_ = -1;
  UniqueFd process_fd_;
  UniqueFd input_;
  std::unique_ptr<PipeReader> output_;
  std::unique_ptr<PipeReader> errors_;
  std::optional<ProcessEnd> end_;
};

}  // namespace rnicd::test
