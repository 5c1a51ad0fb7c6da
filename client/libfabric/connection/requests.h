#pragma once

#include <rdma/fabric.h>

#include <cstddef>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "client/libfabric/connection/event_queue.h"
#include "client/libfabric/connection/rendezvous.h"

namespace rnicd::fi {

// Connections that peers have made and that have not said what they want, beyond which the oldest is dropped.
inline constexpr size_t kSilentPeersMax = 128;
// Requests that the program has neither taken nor rejected, beyond which peers wait in the listener's queue.
inline constexpr size_t kWaitingRequestsMax = 1024;

// Those who ask to connect at a listener. A request is reported as FI_CONNREQ, with a handle by which it is taken or
// rejected. What goes wrong on a socket ends that socket.
// Threads: safe, but for the destructor; uses the queue's connection_mutex, not to be called with it.
class Requests final : public Watched {
 public:
  struct Taken {
    Stream stream;
    std::vector<std::byte> queue_pair;
  };

  // All outlive it. Events are those of `endpoint`, with copies of its `info`.
  Requests(EventQueue& queue, Listener& listener, fid& endpoint, const fi_info& info);
  // Handles that are left are void.
  ~Requests();

  // Begins to accept. 0 or a negative errno value.
  int Start();
  // Nothing for what is not a handle.
  static std::optional<Taken> Take(fid* handle);
  // -FI_EINVAL for what is no handle of these requests any more, or too much data.
  int Reject(const fid* handle, std::span<const std::byte> data);

 private:
  struct Request;
  using List = std::list<std::unique_ptr<Request>>;

  void OnReady() override;
  void Admit(Stream stream);
  // Reads what a silent peer says. False when it is to be dropped.
  bool Listen(Request& request);
  bool OnRequest(Request& request);
  void Drop(List& list, List::iterator request);
  List::iterator FindWaiting(const fid* handle);

  EventQueue& queue_;
  Listener& listener_;
  fid& endpoint_;
  const fi_info& info_;
  // Guarded by the queue's connection_mutex, oldest first.
  List silent_;
  List waiting_;
};

}  // namespace rnicd::fi
