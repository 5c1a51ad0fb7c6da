#include "daemon/rpc/event_loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>

#include "base/errno_status.h"
#include "base/wipe.h"

namespace rnicd::rpc {
namespace {

constexpr int kEventsAtOnce = 64;
// Keys of the loop's own descriptors.
constexpr EventLoop::Key kWakeUp = 1;
constexpr EventLoop::Key kAlarm = 2;

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
  UniqueFd alarm(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  epoll_event woken_up = EventOf(EPOLLIN, kWakeUp);
  epoll_event alarmed = EventOf(EPOLLIN, kAlarm);
  if (!epoll.valid() || !wake_up.valid() || !alarm.valid() ||
      epoll_ctl(epoll.get(), EPOLL_CTL_ADD, wake_up.get(), &woken_up) != 0 ||
      epoll_ctl(epoll.get(), EPOLL_CTL_ADD, alarm.get(), &alarmed) != 0) {
    return absl::UnavailableError(ErrnoDetail("epoll_create1, eventfd, timerfd_create", errno));
  }
  std::shared_ptr<EventLoop> loop(new EventLoop(std::move(epoll), std::move(wake_up), std::move(alarm)));
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
    SetAlarm();
    const int count = epoll_wait(epoll_.get(), events.data(), kEventsAtOnce, ending_ ? 0 : -1);
    for (int index = 0; index < count; ++index) {
      OnEvent(events[static_cast<size_t>(index)].events, events[static_cast<size_t>(index)].data.u64);
    }
    WipeStack();
  }
  // The number may become that of another thread.
  thread_id_.store({});
}

void EventLoop::OnEvent(uint32_t epoll_events, Key key) {
  uint64_t ignored = 0;
  if (key == kWakeUp) {
    eventfd_read(wake_up_.get(), &ignored);
  } else if (key == kAlarm) {
    alarm_due_.reset();
    eventfd_read(alarm_.get(), &ignored);  // A timerfd is read as an eventfd is.
    RunTimers();
  } else if (const auto found = watched_.find(key); found != watched_.end()) {
    // An earlier callback of this round may have forgotten the descriptor, and this one may.
    const std::shared_ptr<OnReady> on_ready = found->second.on_ready;
    (*on_ready)(epoll_events);
  }
}

void EventLoop::SetAlarm() {
  if (timers_.empty() || (alarm_due_.has_value() && *alarm_due_ <= timers_.begin()->first.due)) {
    return;
  }
  alarm_due_ = timers_.begin()->first.due;
  // A time that has passed goes off at once, but zero would switch the alarm off.
  const auto due = std::max(alarm_due_->time_since_epoch(), Instant::duration(1));
  const auto seconds = std::chrono::floor<std::chrono::seconds>(due);
  const itimerspec setting = {.it_interval = {},
                              .it_value = {.tv_sec = seconds.count(), .tv_nsec = (due - seconds).count()}};
  timerfd_settime(alarm_.get(), TFD_TIMER_ABSTIME, &setting, nullptr);
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
