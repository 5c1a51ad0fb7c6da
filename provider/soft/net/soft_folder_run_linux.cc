// The network's thread, and what others call while it runs.

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/system/this_thread.h"
#include "provider/soft/net/soft_folder_linux.h"

namespace rnicd::provider {

void SoftFolder::Start(Receiver& receiver) {
  receiver_ = &receiver;
  thread_ = std::thread([this] { Run(); });
}

void SoftFolder::Stop() {
  if (thread_.joinable()) {
    eventfd_write(stop_.get(), 1);
    thread_.join();
  }
  if (!path_.empty()) {
    unlink(path_.c_str());
    path_.clear();
  }
  listener_ = UniqueFd();
  for (const auto& [number, link] : AllLinks()) {
    link->ShutDown();
  }
  MutexLock lock(mutex_);
  links_.clear();
  routes_.clear();
}

uint64_t SoftFolder::Find(const IpAddress& host) const {
  MutexLock lock(mutex_);
  const auto found = routes_.find(host);
  return found != routes_.end() ? found->second : 0;
}

bool SoftFolder::Send(uint64_t link, const SoftFrame& frame) {
  const std::shared_ptr<SoftLink> found = LinkOf(link);
  if (found != nullptr) {
    found->Send(FrameText(frame));
  }
  return found != nullptr;
}

void SoftFolder::Taken(uint64_t link) {
  if (const std::shared_ptr<SoftLink> found = LinkOf(link); found != nullptr) {
    found->Take();
  }
}

std::shared_ptr<SoftLink> SoftFolder::LinkOf(uint64_t number) const {
  MutexLock lock(mutex_);
  const auto found = links_.find(number);
  return found != links_.end() ? found->second : nullptr;
}

SoftFolder::Links SoftFolder::AllLinks() const {
  MutexLock lock(mutex_);
  return links_;
}

// --- the thread ---

void SoftFolder::Run() {
  NameThread("soft-network");
  constexpr int kEvents = 16;
  std::array<epoll_event, kEvents> events = {};
  next_tick_ = std::chrono::steady_clock::now() + patience_.tick;
  while (true) {
    const int count = epoll_wait(epoll_.get(), events.data(), kEvents, static_cast<int>(patience_.tick.count()));
    for (int index = 0; index < count; ++index) {
      const uint64_t key = events.at(static_cast<size_t>(index)).data.u64;
      if (key == kStopKey) {
        return;
      }
      key == kListenerKey ? Accept() : OnReady(key, events.at(static_cast<size_t>(index)).events);
    }
    if (std::chrono::steady_clock::now() >= next_tick_) {
      OnTick();
    }
  }
}

// One at a time: the next makes the listener ready again, with the next tick where this process has no descriptors
// left.
void SoftFolder::Accept() {
  UniqueFd socket(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (socket.valid()) {
    WatchListener();
  }
  if (socket.valid() && IsOwnUser(socket.get())) {
    AddLink(std::move(socket));
  }
}

void SoftFolder::WatchListener() {
  epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data = {.u64 = kListenerKey}};
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, listener_.get(), &event);
}

void SoftFolder::OnReady(uint64_t number, uint32_t events) {
  const std::shared_ptr<SoftLink> link = LinkOf(number);
  if (link == nullptr) {
    return;
  }
  if ((events & EPOLLOUT) != 0) {
    link->Flush();
  }
  // What a peer has sent before it ended still counts, but not more than the worker has room for.
  const bool lost = (events & EPOLLIN) != 0 ? !ReadFrames(*link) : (events & (EPOLLHUP | EPOLLERR)) != 0;
  if (lost) {
    Lose(number);
  }
}

bool SoftFolder::ReadFrames(SoftLink& link) {
  constexpr int kFramesAtATime = 16;
  std::string packet;
  for (int count = 0; count < kFramesAtATime && !link.paused(); ++count) {
    const SoftLink::Arrival arrival = link.Read(packet);
    if (arrival != SoftLink::Arrival::kPacket) {
      return arrival == SoftLink::Arrival::kNone;
    }
    std::optional<SoftFrame> frame = ParseFrame(packet);
    if (!frame.has_value() || link.hosts.empty() != std::holds_alternative<SoftHello>(*frame)) {
      return false;
    }
    link.heard_at = ticks_;
    if (const auto* const hello = std::get_if<SoftHello>(&*frame); hello != nullptr) {
      if (!TakeHello(link, *hello)) {
        return false;
      }
    } else if (!std::holds_alternative<SoftPing>(*frame)) {
      link.Give();
      receiver_->OnFrame(link.number(), *std::move(frame));
    }
  }
  return true;
}

// No link takes an address that this daemon or another link has.
bool SoftFolder::TakeHello(SoftLink& link, const SoftHello& hello) {
  MutexLock lock(mutex_);
  for (const IpAddress& host : hello.hosts) {
    const auto route = routes_.find(host);
    const bool is_taken = route != routes_.end() && route->second != link.number();
    if (is_taken || std::ranges::find(hosts_, host) != hosts_.end()) {
      return false;
    }
  }
  for (const IpAddress& host : hello.hosts) {
    routes_.emplace(host, link.number());
  }
  link.hosts = hello.hosts;
  return true;
}

void SoftFolder::OnTick() {
  next_tick_ = std::chrono::steady_clock::now() + patience_.tick;
  ++ticks_;
  WatchListener();
  const std::string ping = FrameText(SoftPing{});
  for (const auto& [number, link] : AllLinks()) {
    link->heard_at = link->paused() ? ticks_ : link->heard_at;
    if (ticks_ - link->heard_at > patience_.silent_ticks) {
      Lose(number);
    } else {
      link->Send(ping);
    }
  }
}

void SoftFolder::Lose(uint64_t number) {
  const std::shared_ptr<SoftLink> link = LinkOf(number);
  link->ShutDown();
  link->Unwatch();
  {
    MutexLock lock(mutex_);
    links_.erase(number);
    std::erase_if(routes_, [number](const auto& route) { return route.second == number; });
  }
  receiver_->OnLost(number);
}

}  // namespace rnicd::provider
