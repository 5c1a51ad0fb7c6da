#pragma once

#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "base/clock.h"

namespace rnicd::rpc {

// What holds for a descriptor, as bits. The last two are reported whether they are asked for or not.
inline constexpr uint32_t kReadable = 0x1;
inline constexpr uint32_t kWritable = 0x4;
inline constexpr uint32_t kFailed = 0x8;
inline constexpr uint32_t kHungUp = 0x10;

// What the thread of an event loop sleeps on: descriptors, one time, and WakeUp. On Windows descriptors are sockets.
// Lifetime: outlives no descriptor that it watches.
// Threads:  WakeUp from any, the rest from one.
class Poller {
 public:
  // Names a descriptor; chosen by the caller, not kAlarm.
  using Key = uint64_t;
  // Reported when the time of SetAlarm has come.
  static constexpr Key kAlarm = 1;

  // Errors: kUnavailable without descriptors.
  static absl::StatusOr<std::unique_ptr<Poller>> Create();
  virtual ~Poller() = default;

  // Watches `fd` for `events` (level-triggered). False when the system refuses.
  virtual bool Add(int fd, uint32_t events, Key key) = 0;
  virtual void Change(int fd, uint32_t events, Key key) = 0;
  // Before the descriptor is closed.
  virtual void Remove(int fd) = 0;
  // Replaces the time of the last call.
  virtual void SetAlarm(Instant due) = 0;

  // Calls `ready` for descriptors that are ready, and for the alarm. If `block`, waits for one of them or for WakeUp.
  // May return early. `ready` may call Add, Change, Remove and SetAlarm; a descriptor that it removes may still be
  // reported in the same Wait.
  virtual void Wait(bool block, absl::FunctionRef<void(uint32_t events, Key key)> ready) = 0;
  // Ends the present Wait, or the next.
  virtual void WakeUp() = 0;
};

}  // namespace rnicd::rpc
