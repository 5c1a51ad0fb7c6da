#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "tests/support/child_process.h"
#include "tests/support/daemon_process.h"

namespace rnicd::test {

// What a ChildClient answered to one command.
struct ChildAnswer {
  // "ok key=value ..." gives true; "error REASON" and no answer at all give false.
  bool ok = false;
  std::map<std::string, std::string> values;
  // The name of the ErrorReason, "NO_DETAIL" for a failure without one, empty when there was no answer.
  std::string reason;

  uint64_t number(const std::string& key) const;
};

// A client in a process of its own, usually of another user: the program test_client, whose main.cc lists the commands.
// Lifetime: killed when this goes.
class ChildClient {
 public:
  // Null, after a test failure, when it cannot be started.
  static std::unique_ptr<ChildClient> Start(const DaemonProcess& daemon, std::optional<uid_t> uid = std::nullopt);

  // One command, one answer. A test failure when there is no answer in time.
  ChildAnswer Run(const std::string& command, std::chrono::milliseconds limit = kPatience);
  // Run, and a test failure when the answer is not ok.
  ChildAnswer MustRun(const std::string& command);
  // Sends the command without waiting for its answer.
  void Send(const std::string& command) { process_->WriteLine(command); }
  // The answer to a command that was only sent.
  ChildAnswer Answer(std::chrono::milliseconds limit = kPatience);

  ChildProcess& process() { return *process_; }
  // SIGKILL; returns when the process is gone.
  void KillHard();

 private:
  explicit ChildClient(std::unique_ptr<ChildProcess> process) : process_(std::move(process)) {}

  const std::unique_ptr<ChildProcess> process_;
};

}  // namespace rnicd::test
