#include "daemon/transport/door_sockets.h"

#include <sys/socket.h>

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "daemon/core/session/names.h"

namespace rnicd::transport {

DoorSockets::DoorSockets(SocketDirectory& workloads, SocketDirectory& operators, mode_t workload_mode,
                         const log::Logger& logger, OnListener on_listener)
    : logger_(logger), on_listener_(std::move(on_listener)) {
  places_ = {{.door = Door::kOperator,
              .name = core::kAdminSocketName,
              .type = SOCK_STREAM,
              .mode = 0600,
              .directory = &operators,
              .file = {}},
             {.door = Door::kFd,
              .name = core::kFdSocketName,
              .type = SOCK_SEQPACKET,
              .mode = workload_mode,
              .directory = &workloads,
              .file = {}},
             {.door = Door::kWorkload,
              .name = core::kRpcSocketName,
              .type = SOCK_STREAM,
              .mode = workload_mode,
              .directory = &workloads,
              .file = {}}};
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
  RNICD_ASSIGN_OR_RETURN(NamedListener named, place.directory->Listen(place.name, place.type, place.mode));
  const bool carries_packets = place.door == Door::kFd;
  const SocketKind kind = {.carries_packets = carries_packets,
                           .refuses_descriptors = !carries_packets && RefuseDescriptors(named.listener.get())};
  RNICD_RETURN_IF_ERROR(on_listener_(place.door, kind, std::move(named.listener)));
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
        absl::StrAppend(&paths, paths.empty() ? "" : ", ", place.directory->path(), "/", place.name);
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
  RNICD_RETURN_IF_ERROR(place.directory->KeepClaim());
  if (place.directory->Has(place.name, place.file)) {
    return absl::OkStatus();
  }
  RNICD_RETURN_IF_ERROR(Listen(place).status());
  logger_.Warning("a socket was removed or replaced, and was made again",
                  {{"path", absl::StrCat(place.directory->path(), "/", place.name)}});
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
    place.directory->Remove(place.name, place.file);
  }
}

std::optional<std::string> DoorSockets::trouble() const {
  MutexLock lock(trouble_mutex_);
  return trouble_;
}

}  // namespace rnicd::transport
