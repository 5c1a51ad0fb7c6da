#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <utility>

#include "base/errno_status.h"
#include "base/files/unique_fd.h"
#include "daemon/rpc/socket/poller.h"

namespace rnicd::rpc {
namespace {

static_assert(kReadable == EPOLLIN && kWritable == EPOLLOUT && kFailed == EPOLLERR && kHungUp == EPOLLHUP);

constexpr int kEventsAtOnce = 64;
// Names wake_up_; no caller's key, as keys count up from kAlarm.
constexpr Poller::Key kWakeUp = 0;

epoll_event EventOf(uint32_t events, Poller::Key key) {
  epoll_event event = {};
  event.events = events;
  event.data.u64 = key;
  return event;
}

class EpollPoller final : public Poller {
 public:
  EpollPoller(UniqueFd epoll, UniqueFd wake_up, UniqueFd alarm)
      : epoll_(std::move(epoll)), wake_up_(std::move(wake_up)), alarm_(std::move(alarm)) {}

  bool Add(int fd, uint32_t events, Key key) override { return Control(EPOLL_CTL_ADD, fd, events, key); }
  void Change(int fd, uint32_t events, Key key) override { Control(EPOLL_CTL_MOD, fd, events, key); }
  void Remove(int fd) override { epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr); }

  void SetAlarm(Instant due) override {
    // A time that has passed goes off at once, but zero would switch the alarm off.
    const auto time = std::max(due.time_since_epoch(), Instant::duration(1));
    const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
    const itimerspec setting = {.it_interval = {},
                                .it_value = {.tv_sec = seconds.count(), .tv_nsec = (time - seconds).count()}};
    timerfd_settime(alarm_.get(), TFD_TIMER_ABSTIME, &setting, nullptr);
  }

  void Wait(bool block, absl::FunctionRef<void(uint32_t events, Key key)> ready) override {
    std::array<epoll_event, kEventsAtOnce> events;
    const int count = epoll_wait(epoll_.get(), events.data(), kEventsAtOnce, block ? -1 : 0);
    for (int index = 0; index < count; ++index) {
      const epoll_event& event = events[static_cast<size_t>(index)];
      uint64_t ignored = 0;
      if (event.data.u64 == kWakeUp) {
        eventfd_read(wake_up_.get(), &ignored);
        continue;
      }
      if (event.data.u64 == kAlarm) {
        eventfd_read(alarm_.get(), &ignored);  // A timerfd is read as an eventfd is.
      }
      ready(event.events, event.data.u64);
    }
  }

  void WakeUp() override { eventfd_write(wake_up_.get(), 1); }

  bool Control(int operation, int fd, uint32_t events, Key key) {
    epoll_event event = EventOf(events, key);
    return epoll_ctl(epoll_.get(), operation, fd, &event) == 0;
  }
  bool WatchOwn() { return Add(wake_up_.get(), EPOLLIN, kWakeUp) && Add(alarm_.get(), EPOLLIN, kAlarm); }

 private:
  const UniqueFd epoll_;
  const UniqueFd wake_up_;
  // A timerfd: waiting with a timeout would set a timer of the kernel's at every wait.
  const UniqueFd alarm_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Poller>> Poller::Create() {
  UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  UniqueFd wake_up(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  UniqueFd alarm(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  const bool made = epoll.valid() && wake_up.valid() && alarm.valid();
  auto poller = std::make_unique<EpollPoller>(std::move(epoll), std::move(wake_up), std::move(alarm));
  if (!made || !poller->WatchOwn()) {
    return absl::UnavailableError(ErrnoDetail("epoll_create1, eventfd, timerfd_create", errno));
  }
  return poller;
}

}  // namespace rnicd::rpc
