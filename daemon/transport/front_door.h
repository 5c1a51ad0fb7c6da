#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/unique_fd.h"
#include "daemon/core/caller.h"
#include "daemon/core/node.h"
#include "daemon/core/observer.h"
#include "daemon/core/session_registry.h"
#include "daemon/log/logger.h"
#include "daemon/transport/peer.h"
#include "daemon/transport/socket_directory.h"

namespace rnicd::transport {

// Names what a caller's connections count for: its pod, else its container, else its uid. Pods commonly run with the
// same uid, and one of them must not use up what the others need.
std::string OwnerOf(const core::Caller& caller);

// A connection that a ConnectionServer serves.
// Lifetime: the destructor ends the service, and does not wait for it.
class ServedConnection {
 public:
  virtual ~ServedConnection() = default;
  // The client has disconnected: objects of the client must not survive because of this connection. Quick; called once,
  // before the destructor.
  virtual void Disconnected() = 0;
  // True when the connection has been idle since `since` and holds nothing.
  virtual bool SilentSince(Instant since) const = 0;
};

// Serves the connections that the front door admits.
class ConnectionServer {
 public:
  virtual ~ConnectionServer() = default;
  // Takes the socket, which is non-blocking. Null when it cannot be served. Called on the front door's thread.
  virtual std::unique_ptr<ServedConnection> Serve(UniqueFd socket, const core::Caller& caller) = 0;
};

struct FrontDoorOptions {
  // Limit for workloads, on both their sockets; operators are not counted. 0 means no limit.
  uint64_t max_connections = 0;
  // Limit for one pod; for one container outside of pods; for one uid outside of both.
  uint64_t max_connections_per_uid = 0;
  std::chrono::milliseconds silent_timeout{10000};
  mode_t socket_mode = 0666;
  // Folder with the control groups of callers; another one only in tests.
  std::string proc_folder = "/proc";
};

// Accepts every connection; identifies the caller; and watches each client's socket and process until one of them ends.
// One thread, one epoll. Lifetime: all its arguments outlive it. Stop before destroying.
class FrontDoor {
 public:
  FrontDoor(const FrontDoorOptions& options, core::Node& node, core::SessionRegistry& registry,
            const log::Logger& logger, ConnectionServer& server);
  ~FrontDoor();

  // Opens the sockets and serves. Errors: those of SocketDirectory::Listen and ProbeIdentityRung.
  absl::Status Start(const SocketDirectory& workloads, const SocketDirectory& operators);
  // Accepts nothing from now on; open connections continue.
  void StopAccepting();
  // Ends every connection and the thread.
  void Stop();

  // Number of connections on the workload and admin sockets.
  uint64_t connections() const { return connection_count_.load(); }

 private:
  enum class Door : uint8_t { kWorkload, kOperator, kFd };
  // Source of an epoll event; `key` names the listener or the connection.
  enum class Watch : uint8_t { kListener, kSocket, kProcess, kWakeUp };

  struct Connection {
    Door door = Door::kWorkload;
    // The front door's own descriptor of the socket: the served one belongs to its server.
    UniqueFd socket;
    Peer peer;
    // The owner the connection counts for.
    std::string owner;
    Instant accepted;
    // Null for the fd socket.
    std::unique_ptr<ServedConnection> served;
    // True for an fd connection whose packet a worker processes.
    bool at_work = false;
  };

  absl::Status OpenDoor(Door door, const SocketDirectory& directory, const char* name, int type, mode_t mode);
  void Run();
  void Handle(uint64_t data);
  static uint64_t UrgencyOf(uint64_t data);
  void AcceptSome(Door door);
  // False when no connection is left to accept.
  bool AcceptOne(Door door);
  bool IsFull() const;
  void Admit(Door door, UniqueFd socket);
  // Sets the caller's role. Empty when the peer is admitted; otherwise one of core::kRefusals.
  std::string_view CheckAdmission(Door door, core::Caller& caller) const;
  // `caller` is null when it is unknown. `cause` adds detail to the reason, or is OK.
  void Refuse(std::string_view reason, const core::Caller* caller, const absl::Status& cause = absl::OkStatus());
  void Adopt(Door door, UniqueFd socket, Peer peer);
  void HandleFdPacket(uint64_t key);
  void CloseConnection(uint64_t key);
  void CloseAll();
  void CloseSilent();
  // Periodic work, if it is due.
  void Tick();
  void ClearWakeUp();
  void CloseFinished();
  absl::Status Add(int fd, uint32_t events, Watch watch, uint64_t key);

  const FrontDoorOptions options_;
  core::Node& node_;
  core::SessionRegistry& registry_;
  const log::Logger& logger_;
  ConnectionServer& server_;

  IdentityRung rung_ = IdentityRung::kPidfdOpen;
  UniqueFd epoll_;
  UniqueFd wake_up_;
  // Closed to make room for one accept when no descriptor is left, so that the connection can be refused.
  UniqueFd spare_;
  std::thread thread_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> accepting_{true};
  std::atomic<uint64_t> connection_count_{0};

  // Accessed only by the thread once it runs.
  std::map<Door, UniqueFd> listeners_;
  std::unordered_map<uint64_t, Connection> connections_;
  std::unordered_map<std::string, uint64_t> connections_by_owner_;
  uint64_t next_key_ = 1;
  Instant next_tick_;

  Mutex mutex_;
  // Keys of fd connections whose worker is done.
  std::vector<uint64_t> finished_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::transport
