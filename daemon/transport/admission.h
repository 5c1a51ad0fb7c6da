#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/core/request/node.h"
#include "daemon/core/tenant/caller.h"
#include "daemon/core/tenant/rate_limiter.h"
#include "daemon/door/connect_rates.h"
#include "daemon/door/entrance.h"
#include "daemon/door/refusal.h"
#include "daemon/transport/client_socket.h"
#include "daemon/transport/identity/peer.h"
#include "log/logger.h"

namespace rnicd::transport {

// A connection that was let in. Its socket knows its owner, and keeps its place.
struct AdmittedConnection {
  std::shared_ptr<ClientSocket> socket;
  Peer peer;

  Door door() const { return socket->kind().door; }
};

// Decides who is let in, cheapest question first: a storm of connections that are refused, or have already left, costs
// a few system calls each, and only a new one of an owner within its limits and rate costs a look into /proc.
// Threads: one; the places are shared.
class Admission {
 public:
  struct Options {
    IdentityRung rung = IdentityRung::kPidfdOpen;
    // New connections of one owner; operators are not limited. 0 per second means no limit.
    core::Rate rate;
    std::string proc_folder = "/proc";
  };

  // The node and the logger outlive this.
  Admission(const Options& options, core::Node& node, const log::Logger& logger, std::shared_ptr<door::Places> places)
      : options_(options), node_(node), logger_(logger), entrance_(node.clock, std::move(places), options.rate) {}

  // The process that connected; it is not looked at any further. Errors: as IdentifyPeer.
  absl::StatusOr<core::ProcessKey> ProcessOf(const ClientSocket& socket) const {
    return IdentifyProcess(socket.get(), options_.rung);
  }
  // Empty when the connection is refused, or its client has left.
  std::optional<AdmittedConnection> Admit(std::shared_ptr<ClientSocket> socket);

 private:
  // Counts a refusal against the process, and replies to it where that can be done without waiting: on the fd socket. A
  // gRPC library passes on nothing that a server says before the first call.
  void Refuse(const ClientSocket& socket, pid_t pid, std::string_view reason);
  // Identifies the peer, and sets its role and the socket's owner and place. Empty when the peer is admitted.
  std::optional<door::Refusal> Check(ClientSocket& socket, std::optional<Peer>& peer);
  // Operators are admitted even when workloads have taken every place.
  std::optional<door::Refusal> CheckRole(core::Caller& caller) const;
  std::optional<door::Refusal> TakePlace(ClientSocket& socket, const core::Caller& caller);

  const Options options_;
  core::Node& node_;
  const log::Logger& logger_;
  door::Entrance entrance_;
  door::ConnectBackoff backoff_;
};

}  // namespace rnicd::transport
