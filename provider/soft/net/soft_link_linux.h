#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/files/unique_fd.h"
#include "base/mutex.h"
#include "base/ndk/network_address.h"

namespace rnicd::provider {

// The socket of one link, and what it did not take. A packet is a frame.
// Threads: safe; Read, hosts and heard_at are the network thread's.
class SoftLink {
 public:
  // `epoll` outlives it, and calls the number of the link.
  SoftLink(uint64_t number, UniqueFd socket, int epoll) : number_(number), socket_(std::move(socket)), epoll_(epoll) {}
  SoftLink(const SoftLink&) = delete;
  SoftLink& operator=(const SoftLink&) = delete;

  uint64_t number() const { return number_; }
  // False when the system refuses.
  bool Watch();
  void Unwatch();
  // A packet that the socket does not take is kept, up to a bound that only a peer that does not read reaches: then the
  // link is lost.
  void Send(std::string packet);
  // Sends what was kept.
  void Flush();
  // The next packet. kNone: there is none yet; kLost: there will be none.
  enum class Arrival : uint8_t { kPacket, kNone, kLost };
  Arrival Read(std::string& packet);
  // The link is lost: nothing is sent, and the network thread hears of it.
  void ShutDown();

  // A packet was given away, or has been dealt with. Between many of the first the link is not read from.
  void Give();
  void Take();
  bool paused() const {
    MutexLock lock(mutex_);
    return paused_;
  }

  // Empty before the peer's hello.
  std::vector<IpAddress> hosts;
  // The tick at which the last packet came.
  uint64_t heard_at = 0;

 private:
  void FlushLocked() RNICD_REQUIRES(mutex_);
  void ShutDownLocked() RNICD_REQUIRES(mutex_);
  // Asks for what it waits for.
  void Rearm() RNICD_REQUIRES(mutex_);

  const uint64_t number_;
  const UniqueFd socket_;
  const int epoll_;
  mutable Mutex mutex_;
  std::deque<std::string> kept_ RNICD_GUARDED_BY(mutex_);
  size_t kept_bytes_ RNICD_GUARDED_BY(mutex_) = 0;
  uint32_t given_ RNICD_GUARDED_BY(mutex_) = 0;
  bool paused_ RNICD_GUARDED_BY(mutex_) = false;
  bool shut_down_ RNICD_GUARDED_BY(mutex_) = false;
};

}  // namespace rnicd::provider
