#include "daemon/transport/door_sockets.h"

#include <sys/socket.h>

#include <algorithm>
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

std::string OperatorSocketNameOf(uint32_t generation) { return absl::StrCat("admin-", generation, ".sock"); }

SocketName OperatorSocketOf(SocketDirectory& directory, uint32_t generation) {
  SocketName name = OperatorSocket(directory);
  name.name = OperatorSocketNameOf(generation);
  return name;
}

DoorSockets::DoorSockets(const std::vector<SocketName>& names, const log::Logger& logger, OnListener on_listener)
    : logger_(logger), on_listener_(std::move(on_listener)) {
  for (const SocketName& name : names) {
    places_.push_back({.name = name, .file = {}});
  }
}

absl::StatusOr<SocketKind> DoorSockets::Open(std::vector<HandedSocket> inherited) {
  MutexLock lock(mutex_);
  open_ = true;
  absl::StatusOr<SocketKind> kind;
  for (Place& place : places_) {
    kind = OpenOne(place, inherited);
    if (!kind.ok()) {
      lent_ = !inherited.empty();
      break;
    }
  }
  return kind;
}

absl::StatusOr<SocketKind> DoorSockets::OpenOne(Place& place, std::vector<HandedSocket>& inherited) {
  const auto handed = std::find_if(inherited.begin(), inherited.end(), [&](const HandedSocket& one) {
    return one.door == place.name.door && one.listener.valid();
  });
  if (handed == inherited.end()) {
    return Listen(place);
  }
  NamedListener named = {.listener = std::move(handed->listener), .file = handed->file};
  RNICD_RETURN_IF_ERROR(place.name.directory->ListenAgain(place.name.name, named, place.name.mode));
  return Use(place, std::move(named));
}

absl::StatusOr<SocketKind> DoorSockets::Listen(Place& place) {
  const SocketName& name = place.name;
  RNICD_ASSIGN_OR_RETURN(NamedListener named, name.directory->Listen(name.name, name.type, name.mode));
  const SocketFile file = named.file;
  absl::StatusOr<SocketKind> kind = Use(place, std::move(named));
  if (!kind.ok()) {
    name.directory->Remove(name.name, file);
  }
  return kind;
}

absl::StatusOr<SocketKind> DoorSockets::Use(Place& place, NamedListener named) {
  SocketKind kind = {.door = place.name.door, .refuses_descriptors = false, .tenant = nullptr};
  kind.refuses_descriptors = !kind.carries_packets() && RefuseDescriptors(named.listener.get());
  const SocketFile file = named.file;
  RNICD_RETURN_IF_ERROR(on_listener_(kind, std::move(named)));
  place.file = file;
  return kind;
}

void DoorSockets::SetLent(bool lent) {
  MutexLock lock(mutex_);
  lent_ = lent;
}

void DoorSockets::Restore() {
  // Keyed by the cause: what is wrong with a directory is wrong with both of its sockets.
  std::map<std::string, std::string> missing;
  {
    MutexLock lock(mutex_);
    for (Place& place : places_) {
      if (const absl::Status restored = open_ && !lent_ ? RestoreOne(place) : absl::OkStatus(); !restored.ok()) {
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
  if (!std::exchange(open_, false) || lent_) {
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
