#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <utility>

#include "base/errno_status.h"
#include "base/files/unique_fd.h"
#include "daemon/rings/doorbell_watch.h"

namespace rnicd::rings {
namespace {

constexpr size_t kEventsAtOnce = 64;
// Edge-triggered: each doorbell is one event, and the eventfd need not be read.
constexpr uint32_t kHeard = EPOLLIN | EPOLLET;
constexpr uint32_t kMuted = EPOLLET;

class EpollWatch final : public DoorbellWatch {
 public:
  EpollWatch(UniqueFd epoll, UniqueFd interrupt) : epoll_(std::move(epoll)), interrupt_(std::move(interrupt)) {}

  bool Add(int doorbell, Owner owner) override { return Control(EPOLL_CTL_ADD, doorbell, owner, kHeard); }
  bool Mute(int doorbell, Owner owner) override { return Control(EPOLL_CTL_MOD, doorbell, owner, kMuted); }
  // The eventfd is never empty again after the first doorbell, so that the kernel reports it.
  bool Unmute(int doorbell, Owner owner) override { return Control(EPOLL_CTL_MOD, doorbell, owner, kHeard); }
  void Remove(int doorbell) override { Control(EPOLL_CTL_DEL, doorbell, nullptr, kMuted); }

  void Wait(std::optional<std::chrono::milliseconds> longest, const std::function<void(Owner)>& heard) override {
    const int wait = longest.has_value() ? static_cast<int>(std::clamp<int64_t>(longest->count(), 0, INT_MAX)) : -1;
    std::array<epoll_event, kEventsAtOnce> events;
    const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), wait);
    for (int index = 0; index < count; ++index) {
      if (const Owner owner = events[static_cast<size_t>(index)].data.ptr; owner != nullptr) {
        heard(owner);
      } else {
        eventfd_t ignored = 0;
        eventfd_read(interrupt_.get(), &ignored);
      }
    }
  }

  void Interrupt() override { eventfd_write(interrupt_.get(), 1); }

 private:
  bool Control(int operation, int doorbell, Owner owner, uint32_t events) {
    epoll_event event = {.events = events, .data = {.ptr = owner}};
    return epoll_ctl(epoll_.get(), operation, doorbell, &event) == 0;
  }

  const UniqueFd epoll_;
  const UniqueFd interrupt_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<DoorbellWatch>> DoorbellWatch::Create() {
  UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  UniqueFd interrupt(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  epoll_event interrupted = {.events = EPOLLIN, .data = {.ptr = nullptr}};
  if (!epoll.valid() || !interrupt.valid() ||
      epoll_ctl(epoll.get(), EPOLL_CTL_ADD, interrupt.get(), &interrupted) != 0) {
    return absl::UnavailableError(ErrnoDetail("epoll_create1, eventfd", errno));
  }
  return std::make_unique<EpollWatch>(std::move(epoll), std::move(interrupt));
}

}  // namespace rnicd::rings
