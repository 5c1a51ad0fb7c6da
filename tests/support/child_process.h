#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "tests/support/pipe_reader.h"
#include "tests/support/wait.h"

namespace rnicd::test {

// The users that workloads run as in these tests. Without root every process runs as the one user there is, and
// TwoUids() is false: a test then asserts what is true of one user.
bool TwoUids();
uid_t WorkloadUid();
uid_t OtherUid();

// How a process ended.
struct ProcessEnd {
  // The exit code; -1 when a signal ended it.
  int exit_code = -1;
  // The signal; 0 when it exited.
  int signal = 0;
};

struct ChildOptions {
  std::vector<std::string> command;
  // Without groups and capabilities of its own. Absent means: as this process.
  std::optional<uid_t> uid;
  // RLIMIT_NOFILE; 0 means: as this process.
  uint64_t descriptors_max = 0;
};

// A process of another program, with pipes on its three standard streams.
// Starts without fork(), which a process that has used gRPC does not survive. The kernel kills the child when the
// thread that started it ends, so that nothing outlives a crashed test.
// Lifetime: killed and reaped when this goes.
class ChildProcess {
 public:
  static absl::StatusOr<std::unique_ptr<ChildProcess>> Start(const ChildOptions& options);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  PipeReader& output() { return *output_; }
  PipeReader& errors() { return *errors_; }

  // False when the child reads no more.
  bool WriteLine(std::string_view line);
  void CloseInput() { input_.Reset(-1); }
  void Signal(int signal) const;
  // Returns when the child is stopped by SIGSTOP; false when that did not happen in time.
  bool StopAndWait() const;
  // Nothing when the child has not ended in time. May be asked again.
  std::optional<ProcessEnd> WaitForEnd(std::chrono::milliseconds limit = kPatience);
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
