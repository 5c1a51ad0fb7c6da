#pragma once

#include <sys/types.h>

#include <csignal>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/support/child_process.h"
#include "tests/support/temp_dir.h"

namespace rnicd::test {

// Serves the metrics page on a port that GetStatus tells.
inline constexpr char kMetricsOnFreePort[] = "--metrics_address=127.0.0.1:0";

struct DaemonOptions {
  // In addition to the directories and to what tested_provider.h adds. Without kMetricsOnFreePort, or a metrics
  // address of its own, there is no page.
  std::vector<std::string> flags;
  // Absent means: as this process.
  std::optional<uid_t> uid;
  // RLIMIT_NOFILE; 0 means: as this process.
  uint64_t descriptors_max = 0;
  // The directory of an earlier daemon to start in. Null means a fresh one.
  std::shared_ptr<TempDir> directory;
};

// The real rnicd, as a process of its own in a directory of its own.
// Lifetime: killed and cleaned up when this goes; Stop is the orderly end.
class DaemonProcess {
 public:
  // Returns when all three sockets accept. Fails with the daemon's last words.
  static absl::StatusOr<std::unique_ptr<DaemonProcess>> Start(const DaemonOptions& options = {});
  // Only starts the process, for daemons that are expected to refuse.
  static absl::StatusOr<std::unique_ptr<DaemonProcess>> Launch(const DaemonOptions& options = {});

  std::string socket_dir() const { return directory_->path() + "/s"; }
  std::string rpc_socket() const { return socket_dir() + "/rpc.sock"; }
  std::string fd_socket() const { return socket_dir() + "/fd.sock"; }
  std::string admin_dir() const { return socket_dir() + "-admin"; }
  std::string admin_socket() const { return admin_dir() + "/admin.sock"; }
  const std::shared_ptr<TempDir>& directory() const { return directory_; }
  ChildProcess& process() { return *process_; }
  // What it logged so far.
  std::string log() const { return process_->errors().Text(); }

  // SIGTERM; ok when it then exits with 0 within the limit.
  absl::Status Stop(std::chrono::milliseconds limit = kPatience);
  // The first half of Stop, so that several can stop at the same time.
  void BeginStop() { process_->Signal(SIGTERM); }
  // SIGKILL; returns when the process is gone.
  void KillHard();

 private:
  DaemonProcess() = default;
  bool AcceptsOnAllSockets() const;

  std::shared_ptr<TempDir> directory_;
  std::unique_ptr<ChildProcess> process_;
};

}  // namespace rnicd::test
