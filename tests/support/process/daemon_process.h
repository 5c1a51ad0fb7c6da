#pragma once

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/support/process/child_process.h"
#include "tests/support/process/temp_dir.h"

namespace rnicd::test {

// Serves the metrics page on a free port, which GetStatus reports.
inline constexpr char kMetricsOnFreePort[] = "--metrics_address=127.0.0.1:0";

// A file with this policy. It lives as long as the program; the same text has the same file, so that tests with the
// same flags share a daemon.
std::string PolicyFlag(const std::string& policy);
// A policy in which each uid is a tenant with these limits: "limits { sessions: 1 } session_limits { regions: 2 }".
std::string LimitsFlag(const std::string& limits);

struct DaemonOptions {
  // Flags in addition to the directories and to what tested_provider.h adds. Without kMetricsOnFreePort or another
  // metrics address there is no metrics page.
  std::vector<std::string> flags;
  // User of the daemon. Absent: the user of this process.
  std::optional<uint32_t> uid;
  // RLIMIT_NOFILE; 0 means the limit of this process.
  uint64_t descriptors_max = 0;
  // As in ChildOptions.
  std::vector<std::string> wrapper;
  // As in ChildOptions; log() is empty then.
  std::optional<int> stderr_file;
  // Directory of an earlier daemon to start in. Null means a fresh one.
  std::shared_ptr<TempDir> directory;
};

// The real rnicd as a process, in its own directory.
// Lifetime: the destructor kills the process and cleans up; Stop is the orderly end.
class DaemonProcess {
 public:
  // Returns when all three sockets accept. The error contains the end of the daemon's log.
  static absl::StatusOr<std::unique_ptr<DaemonProcess>> Start(const DaemonOptions& options = {});
  // Only starts the process, for daemons that are expected to refuse to start.
  static absl::StatusOr<std::unique_ptr<DaemonProcess>> Launch(const DaemonOptions& options = {});

  // On Windows the name of a pipe, which is rpc_socket() and fd_socket(), too; likewise for operators.
  std::string socket_dir() const;
  std::string rpc_socket() const;
  std::string fd_socket() const;
  std::string admin_dir() const { return socket_dir() + "-admin"; }
  std::string admin_socket() const;
  const std::shared_ptr<TempDir>& directory() const { return directory_; }
  ChildProcess& process() { return *process_; }
  // The daemon's log so far.
  std::string log() const { return process_->errors().Text(); }
  // Its mappings of files of memory: memory objects, rings, mapped completion queues.
  size_t mapped_files() const;

  // Sends SIGTERM; ok if the daemon then exits with 0 within the limit. On Windows it ends the process.
  absl::Status Stop(std::chrono::milliseconds limit = kTimeout);
  // The first half of Stop, so that several daemons can stop at the same time.
  void BeginStop() { process_->Signal(SIGTERM); }
  // SIGKILL; returns when the process has exited.
  void KillHard();

 private:
  DaemonProcess() = default;
  // Flags that say where clients connect.
  std::vector<std::string> PlaceFlags() const;
  bool AcceptsOnAllSockets() const;

  std::shared_ptr<TempDir> directory_;
  std::unique_ptr<ChildProcess> process_;
};

}  // namespace rnicd::test
