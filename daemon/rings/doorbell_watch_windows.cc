#include <windows.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/files/unique_fd.h"
#include "base/windows_status.h"
#include "daemon/rings/doorbell_watch.h"

namespace rnicd::rings {
namespace {

// Windows waits for so many handles at once; the first is the interruption.
constexpr size_t kDoorbellsMax = MAXIMUM_WAIT_OBJECTS - 1;

struct Doorbell {
  int handle = -1;
  DoorbellWatch::Owner owner = nullptr;
  bool muted = false;
  // It may have rung while it was muted.
  bool may_have_rung = false;
};

class EventWatch final : public DoorbellWatch {
 public:
  explicit EventWatch(UniqueFd interrupt) : interrupt_(std::move(interrupt)) {}

  bool Add(int doorbell, Owner owner) override {
    if (doorbells_.size() == kDoorbellsMax) {
      return false;
    }
    doorbells_.push_back({.handle = doorbell, .owner = owner});
    return true;
  }
  bool Mute(int doorbell, Owner /*owner*/) override { return SetMuted(doorbell, true); }
  bool Unmute(int doorbell, Owner /*owner*/) override { return SetMuted(doorbell, false); }
  void Remove(int doorbell) override {
    std::erase_if(doorbells_, [doorbell](const Doorbell& known) { return known.handle == doorbell; });
  }

  // Windows reports the first of several events. Each is asked for, so that a client who always rings hides no other.
  void Wait(std::optional<std::chrono::milliseconds> longest, const std::function<void(Owner)>& heard) override {
    std::vector<HANDLE> handles = {LongToHandle(interrupt_.get())};
    std::vector<Owner> owners;
    for (Doorbell& doorbell : doorbells_) {
      if (!doorbell.muted) {
        handles.push_back(LongToHandle(doorbell.handle));
        owners.push_back(doorbell.owner);
        if (std::exchange(doorbell.may_have_rung, false)) {
          SetEvent(handles.back());
        }
      }
    }
    const DWORD first =
        WaitForMultipleObjects(static_cast<DWORD>(handles.size()), handles.data(), FALSE, Limit(longest));
    for (size_t index = 1; index < handles.size(); ++index) {
      if (first == WAIT_OBJECT_0 + index || WaitForSingleObject(handles[index], 0) == WAIT_OBJECT_0) {
        heard(owners[index - 1]);
      }
    }
  }

  void Interrupt() override { SetEvent(LongToHandle(interrupt_.get())); }

 private:
  static DWORD Limit(std::optional<std::chrono::milliseconds> longest) {
    return longest.has_value() ? static_cast<DWORD>(std::clamp<int64_t>(longest->count(), 0, INFINITE - 1)) : INFINITE;
  }

  bool SetMuted(int handle, bool muted) {
    const auto doorbell =
        std::ranges::find_if(doorbells_, [handle](const Doorbell& known) { return known.handle == handle; });
    if (doorbell == doorbells_.end()) {
      return false;
    }
    doorbell->may_have_rung = !muted;
    doorbell->muted = muted;
    return true;
  }

  const UniqueFd interrupt_;
  std::vector<Doorbell> doorbells_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<DoorbellWatch>> DoorbellWatch::Create() {
  HANDLE interrupt = CreateEventW(nullptr, /*bManualReset=*/FALSE, /*bInitialState=*/FALSE, nullptr);
  if (interrupt == nullptr) {
    return absl::UnavailableError(WindowsDetail("CreateEvent", GetLastError()));
  }
  return std::make_unique<EventWatch>(UniqueFd(HandleToLong(interrupt)));
}

}  // namespace rnicd::rings
