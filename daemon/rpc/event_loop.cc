#include "daemon/rpc/event_loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <limits>

#include "base/errno_status.h"

namespace rnicd::rpc {
namespace {

constexpr int kEventsAtOnce = 64;
// The key of the descriptor that wakes the thread up.
constexpr EventLoop::Key kWakeUp = 0;

epoll_event EventOf(uint32_t epoll_events, EventLoop::Key key) {
  epoll_event event = {};
  event.events = epoll_events;
  event.data.u64 = key;
  return event;
}

}  // namespace

absl::StatusOr<std::shared_ptr<EventLoop>> EventLoop::Start() {
  UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  UniqueFd wake_up(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  epoll_event event = EventOf(EPOLLIN, kWakeUp);
  if (!epoll.valid() || !wake_up.valid() || epoll_ctl(epoll.get(), EPOLL_CTL_ADD, wake_up.get(), &event) != 0) {
    return absl::UnavailableError(ErrnoDetail("epoll_create1, eventfd", errno));
  }
  std::shared_ptr<EventLoop> loop(new EventLoop(std::move(epoll), std::move(wake_up)));
  loop->thread_ = std::thread([raw = loop.get()] { raw->Run(); });
  return loop;
}

EventLoop::~EventLoop() { Stop(); }

void EventLoop::Stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  eventfd_write(wake_up_.get(), 1);
  if (thread_.joinable()) {
    thread_.join();
  }
  std::vector<Task> dropped;  // Destroyed without the lock: a task may keep what keeps this loop.
  MutexLock lock(mutex_);
  stopped_ = true;
  dropped.swap(tasks_);
}

void EventLoop::Post(Task task) {
  bool first = false;
  {
    MutexLock lock(mutex_);
    if (stopped_) {
      return;
    }
    first = tasks_.empty();
    tasks_.push_back(std::move(task));
  }
  if (first) {
    eventfd_write(wake_up_.get(), 1);
  }
}

EventLoop::Key EventLoop::Watch(int fd, uint32_t epoll_events, OnReady on_ready) {
  epoll_event event = EventOf(epoll_events, ++last_key_);
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    return 0;
  }
  watched_[last_key_] = {.fd = fd, .on_ready = std::make_shared<OnReady>(std::move(on_ready))};
  return last_key_;
}

void EventLoop::Change(Key key, uint32_t epoll_events) {
  if (const auto found = watched_.find(key); found != watched_.end()) {
    epoll_event event = EventOf(epoll_events, key);
    epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, found->second.fd, &event);
  }
}

void EventLoop::Forget(Key key) {
  if (const auto found = watched_.find(key); found != watched_.end()) {
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, found->second.fd, nullptr);
    watched_.erase(found);
  }
}

EventLoop::Timer EventLoop::CallAt(Instant due, Task task) {
  const Timer timer = {.due = due, .key = ++last_key_};
  timers_.emplace(timer, std::move(task));
  return timer;
}

void EventLoop::Run() {
  thread_id_.store(std::this_thread::get_id());
  std::array<epoll_event, kEventsAtOnce> events;
  while (RunTasks()) {
    const int count = epoll_wait(epoll_.get(), events.data(), kEventsAtOnce, WaitMs());
    for (int index = 0; index < count; ++index) {
      // Copied out of a packed structure, whose members cannot be referred to.
      const uint32_t epoll_events = events[static_cast<size_t>(index)].events;
      const Key key = events[static_cast<size_t>(index)].data.u64;
      if (key == kWakeUp) {
        eventfd_t ignored = 0;
        eventfd_read(wake_up_.get(), &ignored);
        continue;
      }
      // An earlier callback of this round may have forgotten the descriptor.
      if (const auto found = watched_.find(key); found != watched_.end()) {
        const std::shared_ptr<OnReady> on_ready = found->second.on_ready;
        (*on_ready)(epoll_events);
      }
    }
    RunTimers();
  }
  // The number may become that of another thread.
  thread_id_.store({});
}

int EventLoop::WaitMs() const {
  if (ending_) {
    return 0;
  }
  if (timers_.empty()) {
    return -1;
  }
  const auto left = timers_.begin()->first.due - std::chrono::steady_clock::now();
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  return static_cast<int>(std::clamp<int64_t>(ms, 0, std::numeric_limits<int>::max()));
}

void EventLoop::RunTimers() {
  const Instant now = std::chrono::steady_clock::now();
  while (!timers_.empty() && timers_.begin()->first.due <= now) {
    auto node = timers_.extract(timers_.begin());
    node.mapped()();
  }
}

bool EventLoop::RunTasks() {
  std::vector<Task> tasks;
  {
    MutexLock lock(mutex_);
    tasks.swap(tasks_);
    ending_ = stopping_;
  }
  for (const Task& task : tasks) {
    task();
  }
  // A task may have posted another one.
  return !tasks.empty() || !ending_;
}

}  // namespace rnicd::rpc
