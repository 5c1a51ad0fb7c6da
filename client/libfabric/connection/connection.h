#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "client/libfabric/connection/connectable.h"
#include "client/libfabric/connection/event_queue.h"
#include "client/libfabric/connection/handshake.h"
#include "client/libfabric/connection/rendezvous.h"

namespace rnicd::fi {

// The connection of one endpoint, over a stream socket. Once connected, its end is reported as FI_SHUTDOWN.
// Threads:  safe, but for the destructor. It and all methods take the queue's connection_mutex: not to be called with
// it. Lifetime: queue and endpoint outlive it. It calls the endpoint with the connection_mutex held.
class Connection final : public Watched {
 public:
  // Begins to connect, from `local` if that is of a family, else from where the system chooses. The result comes as
  // FI_CONNECTED, or as an error of the queue, with the peer's private data: FI_ECONNREFUSED nobody listens or the peer
  // rejects, FI_ECONNRESET it has hung up, EPROTO it does not talk as it should, else the system's or
  // ConnectQueuePair's.
  // Errors: -FI_EINVAL too much data, or no address of the Internet; -FI_EAGAIN the peer is busy, to be tried again;
  // else
  //         what the system says.
  static int Connect(EventQueue& queue, Connectable& endpoint, const sockaddr_storage& peer,
                     std::span<const std::byte> data, std::unique_ptr<Connection>* connection,
                     const sockaddr_storage& local = {});
  // Takes over a request to connect, fi_info::handle of an FI_CONNREQ event. Null for anything else.
  static std::unique_ptr<Connection> Take(fid* request);
  // Answers the request, connects the queue pair, and reports FI_CONNECTED.
  // Errors: -FI_EINVAL too much data, or not a request; -FI_ECONNRESET the peer has hung up; of ConnectQueuePair.
  int Accept(EventQueue& queue, Connectable& endpoint, std::span<const std::byte> data);
  // fi_shutdown: both ends get FI_SHUTDOWN.
  void Shutdown();

  // As getsockname and getpeername have them; in a shared folder those that stand for the sockets' names.
  const sockaddr_storage& local() const { return stream_.local; }
  const sockaddr_storage& peer() const { return stream_.peer; }

  // Ends the connection: the peer gets FI_SHUTDOWN, and nothing is reported here any more.
  ~Connection();

 private:
  enum class State { kRequested, kConnecting, kConnected, kOver };

  Connection() = default;

  int Begin(EventQueue& queue, const sockaddr_storage& to, const sockaddr_storage& from,
            std::span<const std::byte> data);
  void OnReady() override;
  // 0 while all is well, or a positive errno value.
  int Send();
  void ReceiveAnswer();
  void OnAnswer(const Message& answer);
  bool HasHungUp() const;
  void LookForEnd();
  void Fail(int error, std::span<const std::byte> data);
  void Close();

  Stream stream_;
  // Null for a request that is not answered.
  EventQueue* queue_ = nullptr;
  Connectable* endpoint_ = nullptr;
  // What names the queue pair of the one that asks to connect.
  std::vector<std::byte> requesting_queue_pair_;
  State state_ = State::kRequested;
  std::optional<OutgoingMessage> outgoing_;
  IncomingMessage incoming_;
};

}  // namespace rnicd::fi
