#include "daemon/transport/admission.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "daemon/core/tenant/caller.h"
#include "daemon/core/tenant/observation.h"
#include "daemon/transport/fd_packet.h"

namespace rnicd::transport {
namespace {

// Whether the process is to be turned away for a while. Not when descriptors ran out, which is no fault of its own, nor
// when it could not be identified: most such processes have ended, and a newcomer may have the pid. What comes in the
// meantime does not make the while longer.
bool CountsAgainst(std::string_view refusal) {
  return refusal != core::kRefusedNoDescriptors && refusal != core::kRefusedIdentity &&
         refusal != core::kRefusedBackoff;
}

// True when the client closed the connection before it was accepted. A packet that it left on the fd socket is served.
bool HasLeft(Door door, int socket) {
  pollfd state = {.fd = socket, .events = POLLRDHUP, .revents = 0};
  return poll(&state, 1, /*timeout=*/0) == 1 &&
         (door != Door::kFd || recv(socket, nullptr, 0, MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT) <= 0);
}

// 0 when the process is not visible here.
pid_t PidOf(int socket) {
  ucred credentials = {};
  socklen_t size = sizeof(credentials);
  getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size);
  return credentials.pid;
}

}  // namespace

std::optional<AdmittedConnection> Admission::Admit(Door door, std::shared_ptr<ClientSocket> socket) {
  if (HasLeft(door, socket->get())) {
    return std::nullopt;
  }
  const pid_t pid = PidOf(socket->get());
  if (backoff_.Holds(pid, node_.clock.Now())) {
    node_.observer.Report(core::ConnectionRefused{core::kRefusedBackoff});
    Refuse(door, socket->get(), pid, core::kRefusedBackoff);
    return std::nullopt;
  }
  const core::Caller* caller = nullptr;
  std::optional<door::Refusal> refusal;
  absl::StatusOr<Peer> peer;
  if (door != Door::kOperator && entrance_.IsFull()) {
    refusal = door::Refusal{.reason = core::kRefusedLimit, .cause = {}};
  } else if (peer = IdentifyPeer(socket->get(), options_.rung, core::Role::kWorkload, options_.proc_folder);
             !peer.ok()) {
    refusal = door::RefusalOfIdentity(peer.status());
  } else {
    caller = &peer->caller;
    refusal = Check(door, *socket, peer->caller);
  }
  if (refusal.has_value()) {
    Refuse(door, socket->get(), pid, refusal->reason);
    door::ReportRefusal(node_, logger_, *refusal, caller);
    return std::nullopt;
  }
  backoff_.Admitted(pid);
  return AdmittedConnection{.door = door, .socket = std::move(socket), .peer = *std::move(peer)};
}

void Admission::Refuse(Door door, int socket, pid_t pid, std::string_view reason) {
  const Instant now = node_.clock.Now();
  if (CountsAgainst(reason)) {
    backoff_.Refused(pid, now);
  }
  // A process that cannot be identified would be refused again.
  if (door == Door::kFd && reason != core::kRefusedIdentity) {
    SendFdRefusal(socket, reason, std::max(backoff_.Left(pid, now), door::ConnectBackoff::kFirst),
                  reason == core::kRefusedRate ? options_.rate.per_second : 0);
  }
}

std::optional<door::Refusal> Admission::Check(Door door, ClientSocket& socket, core::Caller& caller) {
  socket.SetOwner(core::OwnerOf(caller));
  if (door == Door::kOperator) {
    // An operator is admitted even when workloads have taken every place.
    const bool is_trusted = caller.uid == 0 || caller.uid == geteuid();
    const std::optional<core::Role> role = node_.tenants.RoleOf(caller, is_trusted);
    caller.role = role.value_or(core::Role::kWorkload);
    return role ? std::nullopt : std::optional(door::Refusal{.reason = core::kRefusedRole, .cause = {}});
  }
  door::Entrance::Outcome outcome = entrance_.Admit(socket.owner());
  if (outcome.place == nullptr) {
    return door::Refusal{.reason = outcome.refusal, .cause = {}};
  }
  socket.Keep(std::move(outcome.place));
  return std::nullopt;
}

}  // namespace rnicd::transport
