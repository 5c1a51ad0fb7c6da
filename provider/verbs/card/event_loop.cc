#include "provider/verbs/card/event_loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <array>
#include <set>
#include <utility>

namespace rnicd::provider {
namespace {

void Watch(int epoll, int descriptor) {
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.fd = descriptor;
  epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event);
}

}  // namespace

EventLoop::EventLoop()
    : epoll_(epoll_create1(EPOLL_CLOEXEC)),
      timer_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)),
      stop_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  const auto nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(kTick).count();
  const itimerspec interval = {.it_interval = {.tv_sec = 0, .tv_nsec = nanoseconds},
                               .it_value = {.tv_sec = 0, .tv_nsec = nanoseconds}};
  timerfd_settime(timer_.get(), 0, &interval, nullptr);
  Watch(epoll_.get(), timer_.get());
  Watch(epoll_.get(), stop_.get());
}

EventLoop::~EventLoop() { Stop(); }

void EventLoop::Add(int descriptor, const std::weak_ptr<Handler>& handler) {
  MutexLock lock(mutex_);
  if (stopping_) {
    return;
  }
  handlers_[descriptor] = handler;
  Watch(epoll_.get(), descriptor);
  if (!thread_.joinable()) {
    thread_ = std::thread([this] { Run(); });
  }
}

void EventLoop::Remove(int descriptor) {
  MutexLock lock(mutex_);
  handlers_.erase(descriptor);
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, descriptor, nullptr);
}

void EventLoop::Stop() {
  std::thread thread;
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    thread = std::move(thread_);
  }
  if (thread.joinable()) {
    const uint64_t one = 1;
    (void)!write(stop_.get(), &one, sizeof(one));
    thread.join();
  }
}

void EventLoop::Run() {
  std::array<epoll_event, 32> events;
  while (true) {
    const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), -1);
    for (int index = 0; index < count; ++index) {
      const int descriptor = events[static_cast<size_t>(index)].data.fd;
      if (descriptor == stop_.get()) {
        return;
      }
      if (descriptor == timer_.get()) {
        Tick();
      } else {
        Dispatch(descriptor);
      }
    }
  }
}

void EventLoop::Dispatch(int descriptor) {
  std::shared_ptr<Handler> handler;
  {
    MutexLock lock(mutex_);
    if (const auto found = handlers_.find(descriptor); found != handlers_.end()) {
      handler = found->second.lock();
    }
  }
  if (handler != nullptr && !handler->OnReadable(descriptor)) {
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, descriptor, nullptr);
  }
}

void EventLoop::Tick() {
  uint64_t expirations = 0;
  (void)!read(timer_.get(), &expirations, sizeof(expirations));
  std::set<std::shared_ptr<Handler>> handlers;
  {
    MutexLock lock(mutex_);
    for (const auto& [descriptor, weak] : handlers_) {
      handlers.insert(weak.lock());
    }
  }
  handlers.erase(nullptr);
  for (const std::shared_ptr<Handler>& handler : handlers) {
    handler->OnTick();
  }
}

}  // namespace rnicd::provider
