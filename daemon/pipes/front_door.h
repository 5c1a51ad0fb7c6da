#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "daemon/core/request/node.h"
#include "daemon/core/session/session_registry.h"
#include "daemon/door/bulkhead.h"
#include "daemon/door/connect_rates.h"
#include "daemon/door/connection_server.h"
#include "daemon/door/places.h"
#include "daemon/pipes/clients.h"
#include "daemon/pipes/door.h"
#include "daemon/pipes/loop.h"
#include "daemon/pipes/pipe.h"
#include "daemon/pipes/section_service.h"
#include "daemon/pipes/security.h"
#include "daemon/pipes/tcp_door.h"
#include "log/logger.h"

namespace rnicd::pipes {

struct FrontDoorOptions {
  // Limit for workloads: of pipes, and the same of connections; operators have a fixed one of pipes. 0 means no limit.
  uint64_t max_connections = 0;
  // The same for one user.
  uint64_t max_connections_per_user = 0;
  // New pipes of one user, and the same of connections; not for operators. 0 per second means no limit.
  core::Rate connection_rate;
  std::chrono::milliseconds silent_timeout{10000};
};

// The front door of Windows. Clients open a named pipe, which names their process; it tells them a port and a secret
// for gRPC over TCP, and carries handles. One thread serves all pipes and watches clients, another accepts connections
// of TCP; neither waits for a client.
// Lifetime: all its arguments outlive it. Stop before destroying.
// Threads:  one calls; `connections` and Post from any.
class FrontDoor final : private Pipe::Events {
 public:
  FrontDoor(const FrontDoorOptions& options, core::Node& node, core::SessionRegistry& registry,
            const log::Logger& logger, door::Bulkhead& bulkhead, door::ConnectionServer& server);
  ~FrontDoor() override;

  // Opens pipes and ports, and serves. Errors: kUnavailable; those of Pipe::Listen, above all when another process has
  // a pipe of these names.
  absl::Status Start(const PipeNames& names);
  // Accepts nothing from now on; open pipes and connections continue.
  void StopAccepting();
  // Ends every connection and the threads.
  void Stop();

  // One of its threads.
  enum class Thread : uint8_t { kPipes, kTcp };
  // Runs the task on the thread, from Start until Stop; that of TCP until StopAccepting. From any thread.
  void Post(Thread thread, std::function<void()> task);

  // Number of connections over TCP.
  uint64_t connections() const { return clients_ == nullptr ? 0 : clients_->connections(); }

 private:
  // A pipe with a client.
  struct Visit {
    std::shared_ptr<Pipe> pipe;
    Peer peer;
    std::shared_ptr<void> place;
    // The last message, or the connection.
    Instant last_active;
    // True once its client has proved its user, and is one of clients_.
    bool joined = false;
    // True while a handle is on its way, which is not the client's silence.
    bool working = false;
  };
  struct Refusal {
    std::string_view reason;
    absl::Status cause;
  };

  absl::Status OpenPipes();
  // One more instance that waits for a client.
  absl::Status Listen(Door door, bool is_first);
  void FillUp();
  static Clients::Key KeyOf(const Visit& visit) { return {visit.pipe->door(), visit.peer.caller.pid}; }

  void OnConnected(const std::shared_ptr<Pipe>& pipe) override;
  void OnMessage(const std::shared_ptr<Pipe>& pipe, const absl::StatusOr<std::string_view>& message) override;
  void OnEnd(const std::shared_ptr<Pipe>& pipe) override;

  // Empty when the client is let in; then its pipe is one of visits_.
  std::optional<Refusal> Admit(const std::shared_ptr<Pipe>& pipe, core::Caller& caller);
  absl::Status Join(Visit& visit);
  void Answer(Visit& visit, const Hello& hello);
  void Answer(Visit& visit, const GiveSection& give);
  void Answer(Visit& visit, const TakeSection& take);
  void Exchange(Visit& visit, const core::FdTicket& ticket, uint32_t given);
  void Drop(const Pipe* pipe);
  void DropAllOf(const Clients::Key& key);
  void Tick();
  void CloseAll();

  const FrontDoorOptions options_;
  core::Node& node_;
  core::SessionRegistry& registry_;
  const log::Logger& logger_;
  door::ConnectionServer& server_;
  SectionService sections_;

  PipeNames names_;
  std::map<Door, SecurityDescriptor> security_;
  std::shared_ptr<Loop> loop_;
  std::unique_ptr<TcpDoor> tcp_;
  std::unique_ptr<Clients> clients_;

  // Used only by the loop's thread.
  std::map<Door, std::shared_ptr<door::Places>> places_;
  // Each door's own: a process that has too many pipes as a workload may still be an operator's.
  std::map<Door, door::ConnectBackoff> backoff_;
  // For workloads only.
  door::ConnectRates rates_;
  std::map<const Pipe*, std::shared_ptr<Pipe>> waiting_;
  std::map<const Pipe*, Visit> visits_;
  bool accepting_ = false;
};

}  // namespace rnicd::pipes
