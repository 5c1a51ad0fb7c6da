#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/system/unique_socket.h"
#include "daemon/door/entrance.h"
#include "daemon/door/services.h"
#include "daemon/transport/acceptor.h"
#include "daemon/transport/admission.h"
#include "daemon/transport/client_socket.h"
#include "daemon/transport/connection_watcher.h"
#include "daemon/transport/door_sockets.h"
#include "daemon/transport/grant_doors.h"
#include "daemon/transport/handed_door.h"
#include "daemon/transport/inbox.h"
#include "daemon/transport/socket_directory.h"

namespace rnicd::transport {

struct FrontDoorOptions {
  // For workloads, on both their sockets.
  door::ConnectionLimits limits;
  mode_t socket_mode = 0666;
  // Folder with the control groups of callers; another one only in tests.
  std::string proc_folder = "/proc";
  // Passes a copy of the socket on to an older generation of the daemon, if that is to serve the caller: then true, and
  // nothing was read from it. Called on the acceptors' threads, and must not block. Operators are not asked for.
  std::function<bool(const AdmittedConnection&)> route;
};

// The directories of its sockets, claimed; all outlive it.
struct SocketDirectories {
  SocketDirectory& workloads;
  SocketDirectory& operators;
  // That of the directories which grants get as doors.
  SocketDirectory& doors;
};

// Accepts every connection, identifies the caller, and has it served and watched until it ends. Workloads at the shared
// sockets are accepted on one thread, operators on another, the doors of grants on a third, and a fourth one watches: a
// storm of connections delays neither an operator, nor who has a door, nor the discovery of a dead client. The fourth
// one also makes sockets again that were removed.
// A newer generation takes over in two steps: from Give on nobody is accepted, and newcomers wait in the kernel; with
// Retire the names are the other's. Resume goes back from either.
// Lifetime: all its arguments outlive it. Stop before destroying.
// Threads:  Post, Receive, doors, connections and trouble from any; all others from one.
class FrontDoor {
 public:
  FrontDoor(FrontDoorOptions options, const door::Services& services);
  ~FrontDoor();

  // Opens the sockets, or takes those that an older generation has given, and serves. Doors of grants that are unknown
  // here are removed. Errors: those of SocketDirectory::Listen, GrantDoors::Inherit and ProbeIdentityRung; then the
  // older generation still has its sockets and their names.
  absl::Status Start(const SocketDirectories& directories, HandedDoor inherited = {});
  // Accepts nothing from now on, and removes its sockets; open connections continue.
  void StopAccepting();
  // Ends every connection and the threads.
  void Stop();

  // Copies of all by which clients find the daemon. Errors: kUnavailable without descriptors; then it goes on.
  absl::StatusOr<HandedDoor> Give();
  // After Give: the sockets are another daemon's, also at the end of this one. Operators find this one by a socket with
  // its number.
  void Retire(uint32_t generation);
  // Goes on as before Give: accepts those who wait, and makes names again that are missing.
  void Resume();
  using HandBack = std::function<void(std::shared_ptr<const UniqueSocket>)>;
  // Admits a socket that another generation has accepted. One whose process `holds` nothing here is handed back unread:
  // the function sends it. Without these functions everybody is served. They are called on the acceptors' threads, and
  // must not block.
  void Receive(Door door, GrantId grant, UniqueSocket socket, HandBack hand_back = {},
               std::function<bool(const core::ProcessKey&)> holds = {});

  // One of its threads.
  enum class Thread : uint8_t { kWorkloads, kOperators, kDoors, kWatcher };
  // Runs the task on the thread, from Start until Stop; that of an acceptor until StopAccepting.
  void Post(Thread thread, Inbox::Task task);

  // The doors of grants, once it was started.
  core::Doors& doors() { return *grant_doors_; }
  // Number of connections on the workload and admin sockets.
  uint64_t connections() const { return watcher_.size(); }
  // Once it serves: why clients do not find a socket; empty when they find all.
  std::optional<std::string> trouble() const;

 private:
  struct RetiredOperators;

  std::unique_ptr<Acceptor> MakeAcceptor(size_t blocked_max);
  Acceptor& AcceptorOf(Thread thread) { return *acceptors_[static_cast<size_t>(thread)]; }
  // Before anything is opened.
  void Build();
  absl::StatusOr<SocketKind> Open(std::vector<HandedSocket> inherited);
  absl::StatusOr<std::vector<HandedSocket>> Lend();
  absl::StatusOr<HandedDoor> Copies();
  // On the acceptors' threads.
  void ServeOrRoute(AdmittedConnection admitted);

  const FrontDoorOptions options_;
  const door::Services services_;
  IdentityRung rung_ = IdentityRung::kPidfdOpen;
  std::optional<SocketDirectories> directories_;
  ConnectionWatcher watcher_;
  // In the order of Thread.
  std::array<std::unique_ptr<Acceptor>, 3> acceptors_;
  // Before its listeners are closed their names are removed.
  std::unique_ptr<DoorSockets> sockets_;
  std::unique_ptr<GrantDoors> grant_doors_;
  // From Retire until Resume.
  std::unique_ptr<RetiredOperators> retired_operators_;
};

}  // namespace rnicd::transport
