#include <windows.h>

#include <algorithm>
#include <array>

#include "base/clock.h"
#include "base/files/unique_fd.h"
#include "client/ctl/commands/hold.h"

namespace rnicd::ctl {
namespace {

// A wait takes 32 bits of milliseconds, so long ones are split.
constexpr std::chrono::milliseconds kTurnMax = std::chrono::hours(1);

HANDLE HandleOf(const UniqueFd& fd) { return LongToHandle(fd.get()); }

UniqueFd NewEvent() { return UniqueFd(HandleToLong(CreateEventA(nullptr, TRUE, FALSE, nullptr))); }

// The console calls its handler without a context. Set for ever once it was, as a signal of Linux that stays pending.
HANDLE ConsoleEvent() {
  static const HANDLE event = CreateEventA(nullptr, TRUE, FALSE, nullptr);
  return event;
}

BOOL WINAPI OnConsoleEvent(DWORD event) {
  SetEvent(ConsoleEvent());
  if (event != CTRL_C_EVENT && event != CTRL_BREAK_EVENT) {
    // The system ends the process when this returns, or some seconds later.
    Sleep(INFINITE);
  }
  return TRUE;
}

}  // namespace

struct Hold::Wakers {
  Wakers() : session_ended(NewEvent()) { SetConsoleCtrlHandler(OnConsoleEvent, TRUE); }
  Wakers(const Wakers&) = delete;
  Wakers& operator=(const Wakers&) = delete;
  ~Wakers() {
    SetConsoleCtrlHandler(OnConsoleEvent, FALSE);
    ResetEvent(ConsoleEvent());
  }

  UniqueFd session_ended;
};

Hold::Hold() : wakers_(std::make_unique<Wakers>()) {}

Hold::~Hold() = default;

void Hold::OnSessionEnded(const absl::Status& why) {
  {
    MutexLock lock(mutex_);
    end_ = why;
  }
  SetEvent(HandleOf(wakers_->session_ended));
}

bool Hold::Pause(std::chrono::milliseconds time) {
  {
    MutexLock lock(mutex_);
    end_ = absl::OkStatus();
  }
  ResetEvent(HandleOf(wakers_->session_ended));
  return WaitForSingleObject(ConsoleEvent(), static_cast<DWORD>(std::min(time, kTurnMax).count())) == WAIT_TIMEOUT;
}

absl::Status Hold::Wait(const HoldTime& time) {
  const Instant deadline = Instant::clock::now() + time.duration;
  const std::array<HANDLE, 2> waits = {HandleOf(wakers_->session_ended), ConsoleEvent()};
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Instant::clock::now());
    const auto turn = time.forever ? kTurnMax : std::clamp(left, std::chrono::milliseconds(0), kTurnMax);
    const DWORD woken = WaitForMultipleObjects(waits.size(), waits.data(), FALSE, static_cast<DWORD>(turn.count()));
    if (woken == WAIT_OBJECT_0) {
      MutexLock lock(mutex_);
      return end_;
    }
    if (woken != WAIT_TIMEOUT || (!time.forever && Instant::clock::now() >= deadline)) {
      return absl::OkStatus();
    }
  }
}

}  // namespace rnicd::ctl
