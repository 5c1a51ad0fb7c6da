#include "daemon/transport/door_sockets.h"

#include <sys/socket.h>

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "daemon/core/session/names.h"

namespace rnicd::transport {
namespace {

std::string PathOf(const SocketName& name) { return absl::StrCat(name.directory->path(), "/", name.name); }

}  // namespace

std::vector<SocketName> WorkloadSockets(SocketDirectory& directory, mode_t mode) {
  return {{Door::kFd, core::kFdSocketName, SOCK_SEQPACKET, mode, &directory},
          {Door::kWorkload, core::kRpcSocketName, SOCK_STREAM, mode, &directory}};
}

SocketName OperatorSocket(SocketDirectory& directory) {
  return {Door::kOperator, core::kAdminSocketName, SOCK_STREAM, 0600, &directory};
}

DoorSockets::DoorSockets(const std::vector<SocketName>& names, const log::Logger& logger, OnListener on_listener)
    : logger_(logger), on_listener_(std::move(on_listener)) {
  for (const SocketName& name : names) {
    places_.push_back({.name = name, .file = {}});
  }
}

absl::StatusOr<SocketKind> DoorSockets::Open() {
  MutexLock lock(mutex_);
  open_ = true;
  SocketKind kind;
  for (Place& place : places_) {
    RNICD_ASSIGN_OR_RETURN(kind, Listen(place));
  }
  return kind;
}

absl::StatusOr<SocketKind> DoorSockets::Listen(Place& place) {
  const SocketName& name = place.name;
  RNICD_ASSIGN_OR_RETURN(NamedListener named, name.directory->Listen(name.name, name.type, name.mode));
  SocketKind kind = {.door = name.door, .refuses_descriptors = false, .tenant = nullptr};
  kind.refuses_descriptors = !kind.carries_packets() && RefuseDescriptors(named.listener.get());
  if (absl::Status taken = on_listener_(kind, std::move(named.listener)); !taken.ok()) {
    name.directory->Remove(name.name, named.file);
    return taken;
  }
  place.file = named.file;
  return kind;
}

void DoorSockets::Restore() {
  // Keyed by the cause: what is wrong with a directory is wrong with both of its sockets.
  std::map<std::string, std::string> missing;
  {
    MutexLock lock(mutex_);
    for (Place& place : places_) {
      if (const absl::Status restored = open_ ? RestoreOne(place) : absl::OkStatus(); !restored.ok()) {
        std::string& paths = missing[std::string(restored.message())];
        absl::StrAppend(&paths, paths.empty() ? "" : ", ", PathOf(place.name));
      }
    }
  }
  std::string trouble;
  for (const auto& [cause, paths] : missing) {
    absl::StrAppend(&trouble, trouble.empty() ? "" : "; ", "no ", paths, ": ", cause);
  }
  SetTrouble(trouble.empty() ? std::nullopt : std::optional(std::move(trouble)));
}

absl::Status DoorSockets::RestoreOne(Place& place) {
  RNICD_RETURN_IF_ERROR(place.name.directory->KeepClaim());
  if (place.name.directory->Has(place.name.name, place.file)) {
    return absl::OkStatus();
  }
  RNICD_RETURN_IF_ERROR(Listen(place).status());
  logger_.Warning("a socket was removed or replaced, and was made again", {{"path", PathOf(place.name)}});
  return absl::OkStatus();
}

void DoorSockets::SetTrouble(std::optional<std::string> trouble) {
  {
    MutexLock lock(trouble_mutex_);
    if (trouble == trouble_) {
      return;
    }
    trouble_ = trouble;
  }
  if (trouble.has_value()) {
    logger_.Error("clients do not find the daemon", {{"because", *trouble}});
  } else {
    logger_.Info("clients find the daemon again", {});
  }
}

void DoorSockets::Remove() {
  MutexLock lock(mutex_);
  if (!std::exchange(open_, false)) {
    return;
  }
  for (const Place& place : places_) {
    place.name.directory->Remove(place.name.name, place.file);
  }
}

std::optional<std::string> DoorSockets::trouble() const {
  MutexLock lock(trouble_mutex_);
  return trouble_;
}

}  // namespace rnicd::transport
