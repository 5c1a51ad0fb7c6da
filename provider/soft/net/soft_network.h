#pragma once

#include <cstdint>

#include "base/ndk/network_address.h"
#include "provider/soft/net/soft_frame.h"

namespace rnicd::provider {

// Links to other daemons whose soft cards are on the same network. A link has a number that is never used again.
// Lifetime: outlives what sends.
// Threads:  safe, but Start and Stop. No call blocks.
class SoftNetwork {
 public:
  // Hears of the links, on the network's thread; must be quick.
  class Receiver {
   public:
    virtual ~Receiver() = default;
    // In the order in which the peer sent them. Taken must follow, sooner or later.
    virtual void OnFrame(uint64_t link, SoftFrame frame) = 0;
    // Nothing follows from this link.
    virtual void OnLost(uint64_t link) = 0;
  };

  virtual ~SoftNetwork() = default;
  // `receiver` outlives Stop.
  virtual void Start(Receiver& receiver) = 0;
  // Returns when the receiver is not called any more. All links are lost then.
  virtual void Stop() = 0;
  // The link by which a card with that address is reached; 0: none.
  virtual uint64_t Find(const IpAddress& host) const = 0;
  // False when the link is lost.
  virtual bool Send(uint64_t link, const SoftFrame& frame) = 0;
  // A frame has been dealt with. A link whose frames are not is not read from.
  virtual void Taken(uint64_t link) = 0;
};

}  // namespace rnicd::provider
