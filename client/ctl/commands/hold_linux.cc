#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>

#include "base/clock.h"
#include "base/files/unique_fd.h"
#include "client/ctl/commands/hold.h"

namespace rnicd::ctl {
namespace {

// poll takes an int, so long waits are split.
constexpr std::chrono::milliseconds kTurnMax = std::chrono::hours(1);

}  // namespace

struct Hold::Wakers {
  Wakers() : session_ended(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    sigset_t stopping;
    sigemptyset(&stopping);
    sigaddset(&stopping, SIGINT);
    sigaddset(&stopping, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &stopping, &old_signals);
    signals.Reset(signalfd(-1, &stopping, SFD_CLOEXEC | SFD_NONBLOCK));
  }
  Wakers(const Wakers&) = delete;
  Wakers& operator=(const Wakers&) = delete;
  ~Wakers() {
    // A signal that arrived during the hold must not kill the process now.
    signalfd_siginfo signal;
    while (read(signals.get(), &signal, sizeof(signal)) > 0) {
    }
    pthread_sigmask(SIG_SETMASK, &old_signals, nullptr);
  }

  sigset_t old_signals;
  UniqueFd signals;
  UniqueFd session_ended;
};

Hold::Hold() : wakers_(std::make_unique<Wakers>()) {}

Hold::~Hold() = default;

void Hold::OnSessionEnded(const absl::Status& why) {
  {
    MutexLock lock(mutex_);
    end_ = why;
  }
  eventfd_write(wakers_->session_ended.get(), 1);
}

bool Hold::Pause(std::chrono::milliseconds time) {
  {
    MutexLock lock(mutex_);
    end_ = absl::OkStatus();
  }
  eventfd_t ended = 0;
  eventfd_read(wakers_->session_ended.get(), &ended);
  pollfd signals{wakers_->signals.get(), POLLIN, 0};
  return poll(&signals, 1, static_cast<int>(std::min(time, kTurnMax).count())) <= 0;
}

absl::Status Hold::Wait(const HoldTime& time) {
  const Instant deadline = Instant::clock::now() + time.duration;
  std::array<pollfd, 2> waits = {pollfd{wakers_->signals.get(), POLLIN, 0},
                                 pollfd{wakers_->session_ended.get(), POLLIN, 0}};
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Instant::clock::now());
    const auto turn = time.forever ? kTurnMax : std::clamp(left, std::chrono::milliseconds(0), kTurnMax);
    const int ready = poll(waits.data(), waits.size(), static_cast<int>(turn.count()));
    if (ready > 0 && waits[1].revents != 0) {
      MutexLock lock(mutex_);
      return end_;
    }
    const bool time_is_over = !time.forever && Instant::clock::now() >= deadline;
    if (ready > 0 || (ready == 0 && time_is_over)) {
      return absl::OkStatus();
    }
  }
}

}  // namespace rnicd::ctl
