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
#include "daemon/core/tenant/caller.h"
#include "daemon/door/connection_server.h"
#include "daemon/door/entrance.h"
#include "daemon/door/services.h"
#include "daemon/pipes/door.h"
#include "daemon/pipes/exit_watch.h"
#include "daemon/pipes/loop.h"
#include "daemon/pipes/peer.h"

namespace rnicd::pipes {

// The processes that have a pipe open, each with its secret and its connections of TCP. The handle of the process keeps
// its pid from being reused, so a pid names one of them.
// Lifetime: all arguments outlive it; EndAll before the loop ends.
// Threads:  the loop's; `connections` from any.
class Clients {
 public:
  // Names a process at a door: its role there is another, and so is its secret.
  using Key = std::pair<Door, int32_t>;
  // Called on the loop's thread when the process has exited, before its record is gone.
  using OnExit = std::function<void(Key)>;

  // The entrance is for connections of workloads only.
  Clients(const door::Services& services, door::Entrance entrance, Loop& loop, OnExit on_exit)
      : services_(services), entrance_(std::move(entrance)), loop_(loop), on_exit_(std::move(on_exit)) {}

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

  const door::Services services_;
  door::Entrance entrance_;
  Loop& loop_;
  const OnExit on_exit_;
  std::map<Key, std::unique_ptr<Client>> clients_;
  uint64_t next_connection_ = 1;
  std::atomic<uint64_t> connection_count_{0};
};

}  // namespace rnicd::pipes
