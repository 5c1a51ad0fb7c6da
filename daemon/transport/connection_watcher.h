#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <unordered_map>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/files/unique_fd.h"
#include "base/mutex.h"
#include "daemon/door/connection_server.h"
#include "daemon/door/file_handover.h"
#include "daemon/door/services.h"
#include "daemon/transport/admission.h"
#include "daemon/transport/inbox.h"

namespace rnicd::transport {

// Has admitted connections served, and watches each client's socket and process until one of them ends. On a thread of
// its own, so that no storm of connections delays the discovery of a dead client.
// Lifetime: what it is given outlives it. Stop before destroying.
// Threads:  Serve, size and tasks from any; CloseWithSessions on its own; the others from one.
class ConnectionWatcher {
 public:
  // A connection that says nothing is closed after `silent_timeout`. `tick` is called five times a second, on the
  // thread.
  ConnectionWatcher(const door::Services& services, std::chrono::milliseconds silent_timeout, Inbox::Task tick);

  // Errors: kUnavailable without descriptors.
  absl::Status Start();
  // Ends every connection, and the thread.
  void Stop();
  bool running() const { return thread_.joinable(); }

  void Serve(AdmittedConnection admitted);
  // Those that came through the door, when the tenant's sessions have ended: until then each client can be told why.
  void CloseWithSessions(const std::shared_ptr<core::Tenant>& tenant);
  // From any thread.
  void CloseOperators();
  // Number of connections on the workload and admin sockets.
  uint64_t size() const { return count_.load(); }
  // For tasks on the thread. Shared with what ends sessions, which may post a last one when nobody runs it any more.
  const std::shared_ptr<Inbox>& inbox() const { return inbox_; }

 private:
  // Source of an epoll event; `key` names the connection.
  enum class Watch : uint8_t { kSocket, kProcess, kWakeUp };

  struct Connection {
    AdmittedConnection admitted;
    Instant accepted;
    // Null for the fd socket.
    std::unique_ptr<door::ServedConnection> served;
  };

  void Run();
  void Handle(uint64_t data);
  void HandleExit(uint64_t key);
  void HandleSocket(uint64_t key);
  // Empty when there is no such connection any more.
  std::optional<Connection> Forget(uint64_t key);
  void Close(std::optional<Connection> connection);
  // Those that the function selects.
  void CloseWhere(const std::function<bool(const AdmittedConnection&)>& selects);
  void CloseSilent();
  // Periodic work, if it is due.
  void Tick();
  absl::Status Add(int fd, uint32_t events, Watch watch, uint64_t key);

  const door::Services services_;
  const std::chrono::milliseconds silent_timeout_;
  const Inbox::Task tick_;
  door::FileHandover handover_;
  const UniqueFd epoll_;
  const std::shared_ptr<Inbox> inbox_ = std::make_shared<Inbox>();
  std::thread thread_;
  std::atomic<bool> stopping_{false};
  std::atomic<uint64_t> count_{0};
  // Used only by the thread.
  Instant next_tick_;

  Mutex mutex_;
  std::unordered_map<uint64_t, Connection> connections_ RNICD_GUARDED_BY(mutex_);
  uint64_t next_key_ RNICD_GUARDED_BY(mutex_) = 1;
};

}  // namespace rnicd::transport
