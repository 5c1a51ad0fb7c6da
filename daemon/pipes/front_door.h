#pragma once

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
#include "daemon/core/tenant/caller.h"
#include "daemon/door/connect_rates.h"
#include "daemon/door/entrance.h"
#include "daemon/door/file_handover.h"
#include "daemon/door/places.h"
#include "daemon/door/refusal.h"
#include "daemon/door/services.h"
#include "daemon/pipes/clients.h"
#include "daemon/pipes/door.h"
#include "daemon/pipes/loop.h"
#include "daemon/pipes/pipe.h"
#include "daemon/pipes/pipe_message.h"
#include "daemon/pipes/security.h"
#include "daemon/pipes/tcp_door.h"

namespace rnicd::pipes {

// The front door of Windows. Clients open a named pipe, which names their process; it tells them a port and a secret
// for gRPC over TCP, and carries handles. One thread serves all pipes and watches clients, another accepts connections
// of TCP; neither waits for a client.
// Lifetime: all its arguments outlive it. Stop before destroying.
// Threads:  one calls; `connections` and Post from any.
class FrontDoor final : private Pipe::Events {
 public:
  // The limits are those of workloads: of pipes, and the same of connections; operators have a fixed one of pipes.
  FrontDoor(const door::ConnectionLimits& limits, const door::Services& services);
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
  struct PipeConnection {
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

  std::shared_ptr<door::Places> WorkloadPlaces() const;
  absl::Status OpenPipes();
  // One more instance that waits for a client.
  absl::Status Listen(Door door, bool is_first);
  void FillUp();
  static Clients::Key KeyOf(const PipeConnection& connection) {
    return {connection.pipe->door(), connection.peer.caller.pid};
  }

  void OnConnected(const std::shared_ptr<Pipe>& pipe) override;
  void OnMessage(const std::shared_ptr<Pipe>& pipe, const absl::StatusOr<std::string_view>& message) override;
  void OnEnd(const std::shared_ptr<Pipe>& pipe) override;

  // Empty when the client is let in; then its pipe is one of connections_.
  std::optional<door::Refusal> Admit(const std::shared_ptr<Pipe>& pipe, core::Caller& caller);
  absl::Status Join(PipeConnection& connection);
  void Answer(PipeConnection& connection, const Hello& hello);
  void Answer(PipeConnection& connection, const GiveSection& give);
  void Answer(PipeConnection& connection, const TakeSection& take);
  void Exchange(PipeConnection& connection, const core::FdTicket& ticket, uint32_t given);
  void Drop(const Pipe* pipe);
  void DropAllOf(const Clients::Key& key);
  void Tick();
  void CloseAll();

  const door::ConnectionLimits limits_;
  const door::Services services_;
  door::FileHandover handover_;

  PipeNames names_;
  std::map<Door, SecurityDescriptor> security_;
  std::shared_ptr<Loop> loop_;
  std::unique_ptr<TcpDoor> tcp_;
  std::unique_ptr<Clients> clients_;

  // Used only by the loop's thread.
  std::map<Door, door::Entrance> entrances_;
  // Each door's own: a process that has too many pipes as a workload may still be an operator's.
  std::map<Door, door::ConnectBackoff> backoff_;
  std::map<const Pipe*, std::shared_ptr<Pipe>> waiting_;
  std::map<const Pipe*, PipeConnection> connections_;
  bool accepting_ = false;
};

}  // namespace rnicd::pipes
