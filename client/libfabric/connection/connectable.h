#pragma once

#include <rdma/fabric.h>

#include <cstddef>
#include <span>

namespace rnicd::fi {

// What a connection needs of its endpoint.
class Connectable {
 public:
  virtual fid& Fid() = 0;
  // Bytes by which the peer names the queue pair: at most 64.
  virtual std::span<const std::byte> QueuePairAddress() const = 0;
  // Connects the queue pair with the peer's. 0 or a negative errno value.
  virtual int ConnectQueuePair(std::span<const std::byte> address) = 0;
  // The peer has ended: outstanding requests must complete with an error.
  virtual void OnPeerGone() = 0;

 protected:
  ~Connectable() = default;
};

}  // namespace rnicd::fi
