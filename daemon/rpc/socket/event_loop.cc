#include "daemon/rpc/socket/event_loop.h"

#include "base/secrets/wipe.h"
#include "base/status.h"

namespace rnicd::rpc {

absl::StatusOr<std::shared_ptr<EventLoop>> EventLoop::Start(const Clock& clock) {
  RNICD_ASSIGN_OR_RETURN(std::unique_ptr<Poller> poller, Poller::Create());
  std::shared_ptr<EventLoop> loop(new EventLoop(clock, std::move(poller)));
  loop->thread_ = std::thread([raw = loop.get()] { raw->Run(); });
  return loop;
}

EventLoop::~EventLoop() { Stop(); }

void EventLoop::Stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  poller_->WakeUp();
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
    poller_->WakeUp();
  }
}

EventLoop::Key EventLoop::Watch(int fd, uint32_t events, OnReady on_ready) {
  if (!poller_->Add(fd, events, ++last_key_)) {
    return 0;
  }
  watched_[last_key_] = {.fd = fd, .on_ready = std::make_shared<OnReady>(std::move(on_ready))};
  return last_key_;
}

void EventLoop::Change(Key key, uint32_t events) {
  if (const auto found = watched_.find(key); found != watched_.end()) {
    poller_->Change(found->second.fd, events, key);
  }
}

void EventLoop::Forget(Key key) {
  if (const auto found = watched_.find(key); found != watched_.end()) {
    poller_->Remove(found->second.fd);
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
  while (RunTasks()) {
    SetAlarm();
    poller_->Wait(/*block=*/!ending_, [this](uint32_t events, Key key) { OnEvent(events, key); });
    WipeStack();
  }
  // The number may become that of another thread.
  thread_id_.store({});
}

void EventLoop::OnEvent(uint32_t events, Key key) {
  if (key == Poller::kAlarm) {
    alarm_due_.reset();
    RunDue();
  } else if (const auto found = watched_.find(key); found != watched_.end()) {
    // An earlier callback of this round may have forgotten the descriptor, and this one may.
    const std::shared_ptr<OnReady> on_ready = found->second.on_ready;
    (*on_ready)(events);
  }
}

void EventLoop::SetAlarm() {
  if (timers_.empty() || (alarm_due_.has_value() && *alarm_due_ <= timers_.begin()->first.due)) {
    return;
  }
  alarm_due_ = timers_.begin()->first.due;
  poller_->SetAlarm(*alarm_due_);
}

void EventLoop::RunDue() {
  const Instant now = Now();
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
