#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "tests/support/process/child_process.h"
#include "tests/support/process/daemon_process.h"

namespace rnicd::test {

// A ChildClient's response to one command.
struct ChildAnswer {
  // True for "ok key=value ..."; false for "error REASON" and for no response.
  bool ok = false;
  std::map<std::string, std::string> values;
  // The name of the ErrorReason, "NO_DETAIL" for a failure without one, empty if there was no response.
  std::string reason;

  uint64_t number(const std::string& key) const;
};

// A client in its own process, usually as another user: the program test_client, whose main.cc lists the commands.
// Lifetime: the destructor kills the process.
class ChildClient {
 public:
  // Null, after a test failure, if the process cannot be started.
  static std::unique_ptr<ChildClient> Start(const DaemonProcess& daemon, std::optional<uid_t> uid = std::nullopt);
  // Another program that takes commands in the same way.
  static std::unique_ptr<ChildClient> StartProgram(const ChildOptions& options);

  // Sends one command and returns its response; a test failure if none comes within `limit`.
  ChildAnswer Run(const std::string& command, std::chrono::milliseconds limit = kTimeout);
  // Like Run; a test failure if the response is not ok.
  ChildAnswer MustRun(const std::string& command);
  // Sends the command without waiting for the response.
  void Send(const std::string& command) { process_->WriteLine(command); }
  // The response to a command passed to Send.
  ChildAnswer Answer(std::chrono::milliseconds limit = kTimeout);

  ChildProcess& process() { return *process_; }
  // SIGKILL; returns when the process has exited.
  void KillHard();

 private:
  explicit ChildClient(std::unique_ptr<ChildProcess> process) : process_(std::move(process)) {}

  const std::unique_ptr<ChildProcess> process_;
};

}  // namespace rnicd::test
