#include "provider/soft/net/soft_link_linux.h"

#include <sys/epoll.h>

#include "base/system/socket_io.h"
#include "provider/soft/net/soft_frame.h"

namespace rnicd::provider {
namespace {

// More than requests and replies of a peer that reads ever take.
constexpr size_t kKeptBytesMax = 16 << 20;
// Packets that were given away and not dealt with.
constexpr uint32_t kGivenMax = 128;

epoll_event InterestOf(uint64_t number, bool reads, bool writes) {
  epoll_event event = {};
  event.events = (reads ? EPOLLIN : 0U) | (writes ? EPOLLOUT : 0U);
  event.data.u64 = number;
  return event;
}

}  // namespace

bool SoftLink::Watch() {
  epoll_event event = InterestOf(number_, true, false);
  return epoll_ctl(epoll_, EPOLL_CTL_ADD, socket_.get(), &event) == 0;
}

void SoftLink::Unwatch() { epoll_ctl(epoll_, EPOLL_CTL_DEL, socket_.get(), nullptr); }

void SoftLink::Rearm() {
  epoll_event event = InterestOf(number_, !paused_, !kept_.empty());
  epoll_ctl(epoll_, EPOLL_CTL_MOD, socket_.get(), &event);
}

void SoftLink::Send(std::string packet) {
  MutexLock lock(mutex_);
  if (shut_down_) {
    return;
  }
  kept_bytes_ += packet.size();
  kept_.push_back(std::move(packet));
  if (kept_.size() > 1) {
    if (kept_bytes_ > kKeptBytesMax) {
      ShutDownLocked();
    }
    return;
  }
  FlushLocked();
  if (!kept_.empty()) {
    Rearm();
  }
}

void SoftLink::Flush() {
  MutexLock lock(mutex_);
  FlushLocked();
  Rearm();
}

void SoftLink::FlushLocked() {
  while (!kept_.empty()) {
    const int64_t sent = SendSocket(socket_.get(), kept_.front());
    if (sent == kTryLater) {
      return;
    }
    if (sent == kSocketFailed) {
      return ShutDownLocked();
    }
    kept_bytes_ -= kept_.front().size();
    kept_.pop_front();
  }
}

SoftLink::Arrival SoftLink::Read(std::string& packet) {
  // One byte more, so that a packet that is too long does not look like a whole one.
  packet.resize(kFrameBytesMax + 1);
  const int64_t size = ReadSocket(socket_.get(), packet, /*refuses_descriptors=*/true);
  if (size == kTryLater) {
    return Arrival::kNone;
  }
  packet.resize(size > 0 ? static_cast<size_t>(size) : 0);
  return size > 0 && packet.size() <= kFrameBytesMax ? Arrival::kPacket : Arrival::kLost;
}

void SoftLink::ShutDown() {
  MutexLock lock(mutex_);
  ShutDownLocked();
}

void SoftLink::ShutDownLocked() {
  shut_down_ = true;
  kept_.clear();
  kept_bytes_ = 0;
  ShutDownSocket(socket_.get());
}

void SoftLink::Give() {
  MutexLock lock(mutex_);
  if (++given_ >= kGivenMax && !paused_) {
    paused_ = true;
    Rearm();
  }
}

void SoftLink::Take() {
  MutexLock lock(mutex_);
  if (--given_ <= kGivenMax / 2 && paused_) {
    paused_ = false;
    Rearm();
  }
}

}  // namespace rnicd::provider
