#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "provider/api/queue_pair.h"

namespace rnicd::core {

// The effect of arming a queue that is armed: ANY wins over everything, SOLICITED over ERRORS.
CqNotifyType CombineArms(CqNotifyType first, CqNotifyType second);

// When a completion queue has to notify: at most once for each arming, for a completion that came since the last
// notification and was not taken, and never while its event has not been fetched. Completions are numbered from 1 in
// order of arrival.
// Threads: one at a time.
class CqNotifier {
 public:
  // The notifications of a mapped queue are over as soon as they are written; its event holds none back.
  explicit CqNotifier(bool is_mapped) : is_mapped_(is_mapped) {}

  void Arm(CqNotifyType type) { armed_ = armed_.has_value() ? CombineArms(*armed_, type) : type; }
  // `is_waking`: it satisfies SOLICITED.
  void OnPushed(bool is_waking);
  void OnTaken(size_t count) { taken_ += count; }
  // Completions that were taken are back.
  void OnReturned(size_t count) { taken_ -= count; }
  // Those of a mapped queue that its client has not read.
  void OnUnread(uint32_t unread) { taken_ = pushed_ - unread; }

  enum class Due : uint8_t {
    kNothing,
    // Notify the client of a mapped queue; an event of an earlier notification waits to be fetched.
    kNotice,
    // An event is to be sent, too.
    kNoticeAndEvent,
  };
  // False while no notification can be due, whatever completions have arrived.
  bool may_begin() const { return !silent_ && (!in_progress_ || is_mapped_) && armed_.has_value(); }
  // Begins the notification that is due, if one is. `dead`: the queue has overrun, which every arming reports.
  Due Begin(bool dead);
  // The event was fetched: NDK's callback has returned.
  void OnFetched() { in_progress_ = false; }
  // Nothing is notified any more.
  void Silence() { silent_ = true; }
  bool silent() const { return silent_; }

 private:
  const bool is_mapped_;
  uint64_t pushed_ = 0;
  // The last one taken; the last one that satisfies SOLICITED; the newest one at the time of the last notification.
  uint64_t taken_ = 0;
  uint64_t last_waking_ = 0;
  uint64_t notified_ = 0;
  std::optional<CqNotifyType> armed_;
  bool in_progress_ = false;
  bool silent_ = false;
};

}  // namespace rnicd::core
