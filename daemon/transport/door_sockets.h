#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/files/unique_fd.h"
#include "base/mutex.h"
#include "daemon/transport/admission.h"
#include "daemon/transport/client_socket.h"
#include "daemon/transport/handed_door.h"
#include "daemon/transport/socket_directory.h"
#include "log/logger.h"

namespace rnicd::transport {

// A socket by which clients find the daemon.
struct SocketName {
  Door door = Door::kWorkload;
  std::string name;
  int type = 0;
  mode_t mode = 0;
  SocketDirectory* directory = nullptr;
};

// Both that a workload needs, and the operators'.
std::vector<SocketName> WorkloadSockets(SocketDirectory& directory, mode_t mode);
SocketName OperatorSocket(SocketDirectory& directory);
// That of the operators of a daemon from which another one has taken over.
std::string OperatorSocketNameOf(uint32_t generation);
SocketName OperatorSocketOf(SocketDirectory& directory, uint32_t generation);

// Sockets kept under their names: one that was removed, or whose name was given to another file, is made again, and its
// directory as well.
// Lifetime: what it is given outlives it; the destructor removes the names.
// Threads:  safe.
class DoorSockets {
 public:
  // Takes over a socket that listens, in place of an earlier one of that door.
  using OnListener = std::function<absl::Status(SocketKind, NamedListener)>;

  DoorSockets(const std::vector<SocketName>& names, const log::Logger& logger, OnListener on_listener);
  ~DoorSockets() { Remove(); }
  DoorSockets(const DoorSockets&) = delete;
  DoorSockets& operator=(const DoorSockets&) = delete;

  // With the listeners of another daemon, where it has some for these doors. The kind of the last one. Errors: as
  // SocketDirectory::Listen; then those of the other daemon keep their names.
  absl::StatusOr<SocketKind> Open(std::vector<HandedSocket> inherited = {});
  // While they are lent to another daemon, the names are its own: Restore and Remove do nothing.
  void SetLent(bool lent);
  // Makes again what is missing. Waits for nobody but the file system.
  void Restore();
  // Takes the names away that are still this daemon's. From now on Restore does nothing.
  void Remove();
  // Why clients do not find a socket; empty when they find all.
  std::optional<std::string> trouble() const;

 private:
  struct Place {
    SocketName name;
    SocketFile file;
  };

  absl::StatusOr<SocketKind> OpenOne(Place& place, std::vector<HandedSocket>& inherited) RNICD_REQUIRES(mutex_);
  absl::StatusOr<SocketKind> Listen(Place& place) RNICD_REQUIRES(mutex_);
  absl::StatusOr<SocketKind> Use(Place& place, NamedListener named) RNICD_REQUIRES(mutex_);
  absl::Status RestoreOne(Place& place) RNICD_REQUIRES(mutex_);
  // Writes a line when it has changed.
  void SetTrouble(std::optional<std::string> trouble);

  const log::Logger& logger_;
  const OnListener on_listener_;
  Mutex mutex_;
  std::vector<Place> places_ RNICD_GUARDED_BY(mutex_);
  bool open_ RNICD_GUARDED_BY(mutex_) = false;
  bool lent_ RNICD_GUARDED_BY(mutex_) = false;
  // Apart from the other, so that trouble() does not wait for the file system.
  mutable Mutex trouble_mutex_;
  std::optional<std::string> trouble_ RNICD_GUARDED_BY(trouble_mutex_);
};

}  // namespace rnicd::transport
