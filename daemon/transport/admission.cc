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
bool HasLeft(const ClientSocket& socket) {
  pollfd state = {.fd = socket.get(), .events = POLLRDHUP, .revents = 0};
  return poll(&state, 1, /*timeout=*/0) == 1 &&
         (!socket.kind().carries_packets() || recv(socket.get(), nullptr, 0, MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT) <= 0);
}

// 0 when the process is not visible here.
pid_t PidOf(int socket) {
  ucred credentials = {};
  socklen_t size = sizeof(credentials);
  getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size);
  return credentials.pid;
}

}  // namespace

std::optional<AdmittedConnection> Admission::Admit(std::shared_ptr<ClientSocket> socket) {
  if (HasLeft(*socket)) {
    return std::nullopt;
  }
  core::Tenant* const tenant = socket->kind().tenant.get();
  const pid_t pid = PidOf(socket->get());
  if (backoff_.Holds(pid, node_.clock.Now())) {
    door::CountRefusal(node_, core::kRefusedBackoff, tenant);
    Refuse(*socket, pid, core::kRefusedBackoff);
    return std::nullopt;
  }
  std::optional<Peer> peer;
  if (const std::optional<door::Refusal> refusal = Check(*socket, peer); refusal.has_value()) {
    Refuse(*socket, pid, refusal->reason);
    door::ReportRefusal(node_, logger_, *refusal, peer.has_value() ? &peer->caller : nullptr, tenant);
    return std::nullopt;
  }
  backoff_.Admitted(pid);
  return AdmittedConnection{.socket = std::move(socket), .peer = *std::move(peer)};
}

void Admission::Refuse(const ClientSocket& socket, pid_t pid, std::string_view reason) {
  const Instant now = node_.clock.Now();
  if (CountsAgainst(reason)) {
    backoff_.Refused(pid, now);
  }
  // A process that cannot be identified would be refused again.
  if (socket.kind().carries_packets() && reason != core::kRefusedIdentity) {
    SendFdRefusal(socket.get(), reason, std::max(backoff_.Left(pid, now), door::ConnectBackoff::kFirst),
                  reason == core::kRefusedRate ? options_.rate.per_second : 0);
  }
}

// At the door of a grant it is known who pays before the process is looked at.
std::optional<door::Refusal> Admission::Check(ClientSocket& socket, std::optional<Peer>& peer) {
  const SocketKind& kind = socket.kind();
  if (kind.door != Door::kOperator && entrance_.IsFull()) {
    return door::Refusal{.reason = core::kRefusedLimit, .cause = {}};
  }
  if (kind.tenant != nullptr) {
    core::Caller known;
    known.door = kind.tenant;
    if (std::optional<door::Refusal> refusal = TakePlace(socket, known); refusal.has_value()) {
      return refusal;
    }
  }
  absl::StatusOr<Peer> identified =
      IdentifyPeer(socket.get(), options_.rung, core::Role::kWorkload, options_.proc_folder);
  if (!identified.ok()) {
    return door::RefusalOfIdentity(identified.status());
  }
  peer = *std::move(identified);
  peer->caller.door = kind.tenant;
  if (kind.door == Door::kOperator) {
    socket.SetOwner(core::OwnerOf(peer->caller));
    return CheckRole(peer->caller);
  }
  return kind.tenant == nullptr ? TakePlace(socket, peer->caller) : std::nullopt;
}

std::optional<door::Refusal> Admission::CheckRole(core::Caller& caller) const {
  const bool is_trusted = caller.uid == 0 || caller.uid == geteuid();
  const std::optional<core::Role> role = node_.tenants.RoleOf(caller, is_trusted);
  caller.role = role.value_or(core::Role::kWorkload);
  return role ? std::nullopt : std::optional(door::Refusal{.reason = core::kRefusedRole, .cause = {}});
}

std::optional<door::Refusal> Admission::TakePlace(ClientSocket& socket, const core::Caller& caller) {
  socket.SetOwner(core::OwnerOf(caller));
  door::Entrance::Outcome outcome = entrance_.Admit(socket.owner());
  if (outcome.place == nullptr) {
    return door::Refusal{.reason = outcome.refusal, .cause = {}};
  }
  socket.Keep(std::move(outcome.place));
  return std::nullopt;
}

}  // namespace rnicd::transport
