#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/secrets/secret.h"
#include "base/system/unique_socket.h"
#include "daemon/core/request/node.h"
#include "daemon/core/session/session_registry.h"
#include "daemon/door/connect_rates.h"
#include "daemon/door/connection_server.h"
#include "daemon/door/places.h"
#include "daemon/pipes/door.h"
#include "daemon/pipes/exit_watch.h"
#include "daemon/pipes/loop.h"
#include "daemon/pipes/peer.h"
#include "log/logger.h"

namespace rnicd::pipes {

// The processes that have a pipe open, each with its secret and its connections of TCP. The handle of the process keeps
// its pid from being reused, so a pid names one of them.
// Lifetime: all arguments outlive it; EndAll before the loop ends.
// Threads:  the loop's; `connections` from any.
class Clients {
 public:
  // Names a process at a door: its role there is another, and so is its secret.
  using Key = std::pair<Door, int32_t>;
  struct Context {
    core::Node& node;
    core::SessionRegistry& registry;
    const log::Logger& logger;
    door::ConnectionServer& server;
    Loop& loop;
    // For workloads only, as the next.
    std::shared_ptr<door::Places> places;
    // New connections of one user.
    core::Rate rate;
    // Called on the loop's thread when the process has exited, before its record is gone.
    std::function<void(Key)> on_exit;
  };

  explicit Clients(Context context) : context_(std::move(context)), rates_(context_.node.clock, context_.rate) {}

  // One more pipe of this process. Errors: kResourceExhausted when its exit cannot be watched.
  absl::Status Join(const Key& key, const Peer& peer);
  // One pipe less. With the last one the secret is void, and connections and sessions end.
  void Leave(const Key& key);
  // For Hello; the process has joined.
  const std::string& SecretOf(const Key& key) const { return clients_.at(key)->secret; }
  bool HasConnections(const Key& key) const;

  // A connection that this process has made. Refused when it has no pipe, too many connections, or made them too fast.
  void Adopt(const Key& key, UniqueSocket socket);
  void CloseSilent(Instant since);
  void EndAll();
  uint64_t connections() const { return connection_count_.load(); }

 private:
  struct Connection {
    std::unique_ptr<door::ServedConnection> served;
    std::shared_ptr<void> place;
  };
  struct Client {
    Peer peer;
    std::string secret;
    uint64_t pipes = 0;
    std::map<uint64_t, Connection> connections;
    // Destroyed before the process's handle.
    std::unique_ptr<ExitWatch> exit;
  };

  bool IsClient(const core::ProcessKey& process) const;
  void HandleExit(const Key& key, const core::ProcessKey& process);
  void Close(const Key& key, uint64_t connection);
  void Close(Connection connection);
  void Refuse(std::string_view reason, const core::Caller* caller);
  // Takes a place. Null, after the refusal, when there is none.
  std::shared_ptr<void> Admit(const core::Caller& caller);

  const Context context_;
  door::ConnectRates rates_;
  std::map<Key, std::unique_ptr<Client>> clients_;
  uint64_t next_connection_ = 1;
  std::atomic<uint64_t> connection_count_{0};
};

}  // namespace rnicd::pipes
