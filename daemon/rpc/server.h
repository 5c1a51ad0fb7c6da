#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/secrets/secret.h"
#include "base/system/unique_socket.h"
#include "daemon/rpc/bounds/budget.h"
#include "daemon/rpc/bounds/limits.h"
#include "daemon/rpc/connection.h"
#include "daemon/rpc/server_call.h"
#include "daemon/rpc/socket/event_loop.h"

namespace rnicd::rpc {

// Serves gRPC on sockets that somebody else has accepted, on a fixed number of threads.
// Lifetime: the destructor ends all connections, with their last responses, then the threads. What the handlers use
//           outlives it.
// Threads:  safe.
class Server {
 public:
  // `clock` outlives the server. Errors: those of EventLoop::Start.
  static absl::StatusOr<std::unique_ptr<Server>> Start(uint32_t threads, const Limits& limits, const Clock& clock);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // A connected, non-blocking socket.
  struct Client {
    std::shared_ptr<const UniqueSocket> socket;
    // See Connection::Options.
    bool refuses_descriptors = false;
    // Names who shares a budget with this connection.
    std::string owner;
    // See Calls::Options.
    std::optional<SecretDigest> secret;
    // Called once, on a thread of the server, when the connection has ended; may be empty. Must not block.
    std::function<void()> on_end;
  };

  // Serves the socket until the client leaves or the connection is closed.
  std::shared_ptr<Connection> Serve(Client client, CallHandler handler);
  // Connections that have not ended.
  size_t connections();
  // Its threads.
  const std::vector<std::shared_ptr<EventLoop>>& loops() const { return loops_; }
  // Bytes that requests and responses take now.
  uint64_t used_bytes() const { return budget_->used(); }

 private:
  Server(std::vector<std::shared_ptr<EventLoop>> loops, const Limits& limits);
  std::shared_ptr<Budget> BudgetOf(const std::string& owner) RNICD_REQUIRES(mutex_);
  void OnEnd(const Connection& connection);
  // Returns memory to the kernel soon, once ended connections have freed much of it.
  void ScheduleTrim(const Connection& ended) RNICD_REQUIRES(mutex_);

  static constexpr size_t kOwnersMin = 64;

  const Limits limits_;
  const std::shared_ptr<Budget> budget_;

  Mutex mutex_;
  ConditionVariable changed_;
  size_t next_loop_ RNICD_GUARDED_BY(mutex_) = 0;
  std::unordered_map<const Connection*, std::shared_ptr<Connection>> connections_ RNICD_GUARDED_BY(mutex_);
  std::unordered_map<std::string, std::weak_ptr<Budget>> owners_ RNICD_GUARDED_BY(mutex_);
  size_t owners_to_prune_ RNICD_GUARDED_BY(mutex_) = kOwnersMin;
  // About what connections have freed since the last trim.
  uint64_t freed_bytes_ RNICD_GUARDED_BY(mutex_) = 0;
  bool trim_scheduled_ RNICD_GUARDED_BY(mutex_) = false;

  const std::vector<std::shared_ptr<EventLoop>> loops_;
};

}  // namespace rnicd::rpc
