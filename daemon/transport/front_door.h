#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/files/unique_fd.h"
#include "base/mutex.h"
#include "daemon/door/connection_server.h"
#include "daemon/door/entrance.h"
#include "daemon/door/file_handover.h"
#include "daemon/door/places.h"
#include "daemon/door/services.h"
#include "daemon/transport/acceptor.h"
#include "daemon/transport/admission.h"
#include "daemon/transport/client_socket.h"
#include "daemon/transport/door_sockets.h"
#include "daemon/transport/grant_doors.h"
#include "daemon/transport/inbox.h"
#include "daemon/transport/socket_directory.h"

namespace rnicd::transport {

struct FrontDoorOptions {
  // For workloads, on both their sockets.
  door::ConnectionLimits limits;
  mode_t socket_mode = 0666;
  // Folder with the control groups of callers; another one only in tests.
  std::string proc_folder = "/proc";
};

// The directories of its sockets, claimed; all outlive it.
struct SocketDirectories {
  SocketDirectory& workloads;
  SocketDirectory& operators;
  // That of the directories which grants get as doors.
  SocketDirectory& doors;
};

// Accepts every connection; identifies the caller; and watches each client's socket and process until one of them ends.
// Workloads at the shared sockets are accepted on one thread, operators on another, the doors of grants on a third, and
// a fourth one watches: a storm of connections delays neither an operator, nor who has a door, nor the discovery of a
// dead client. The fourth one also makes sockets again that were removed.
// Lifetime: all its arguments outlive it. Stop before destroying.
class FrontDoor {
 public:
  FrontDoor(FrontDoorOptions options, const door::Services& services);
  ~FrontDoor();

  // Opens the sockets and serves. Errors: those of SocketDirectory::Listen and ProbeIdentityRung.
  absl::Status Start(const SocketDirectories& directories);
  // Accepts nothing from now on, and removes its sockets; open connections continue.
  void StopAccepting();
  // Ends every connection and the threads.
  void Stop();

  // One of its threads.
  enum class Thread : uint8_t { kWorkloads, kOperators, kDoors, kWatcher };
  // Runs the task on the thread, from Start until Stop; that of an acceptor until StopAccepting. From any thread.
  void Post(Thread thread, Inbox::Task task);

  // The doors of grants, once it was started.
  core::Doors& doors() { return *grant_doors_; }
  // Number of connections on the workload and admin sockets.
  uint64_t connections() const { return connection_count_.load(); }
  // Once it serves: why clients do not find a socket; empty when they find all. From any thread.
  std::optional<std::string> trouble() const;

 private:
  // Source of an epoll event; `key` names the connection.
  enum class Watch : uint8_t { kSocket, kProcess, kWakeUp };

  struct Connection {
    AdmittedConnection admitted;
    Instant accepted;
    // Null for the fd socket.
    std::unique_ptr<door::ServedConnection> served;
  };

  std::unique_ptr<Acceptor> MakeAcceptor(IdentityRung rung, size_t blocked_max);
  Acceptor& AcceptorOf(Thread thread) { return *acceptors_[static_cast<size_t>(thread)]; }
  void Run();
  void Handle(uint64_t data);
  // On the acceptors' threads.
  void Adopt(AdmittedConnection admitted);
  void HandleExit(uint64_t key);
  void HandleSocket(uint64_t key);
  // Empty when there is no such connection any more.
  std::optional<Connection> Forget(uint64_t key);
  void Close(std::optional<Connection> connection);
  // Every connection, or those that came through the door of this tenant's grant.
  void CloseAll(const core::Tenant* tenant = nullptr);
  // Those that came through the door, when the tenant's sessions have ended: until then each client can be told why.
  void CloseWithSessions(const std::shared_ptr<core::Tenant>& tenant);
  void CloseSilent();
  // Periodic work, if it is due.
  void Tick();
  absl::Status Add(int fd, uint32_t events, Watch watch, uint64_t key);

  const FrontDoorOptions options_;
  const door::Services services_;
  door::FileHandover handover_;

  // In the order of Thread.
  std::array<std::unique_ptr<Acceptor>, 3> acceptors_;
  // Before its listeners are closed their names are removed.
  std::unique_ptr<DoorSockets> sockets_;
  std::unique_ptr<GrantDoors> grant_doors_;
  UniqueFd epoll_;
  // Shared with what ends sessions, which may post a last task when nobody runs it any more.
  const std::shared_ptr<Inbox> inbox_ = std::make_shared<Inbox>();
  std::thread thread_;
  std::atomic<bool> stopping_{false};
  std::atomic<uint64_t> connection_count_{0};
  // Used only by the thread that watches.
  Instant next_tick_;

  Mutex mutex_;
  std::unordered_map<uint64_t, Connection> connections_ RNICD_GUARDED_BY(mutex_);
  uint64_t next_key_ RNICD_GUARDED_BY(mutex_) = 1;
};

}  // namespace rnicd::transport
