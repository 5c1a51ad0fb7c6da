#include "daemon/core/queue/cq_notifier.h"

#include <algorithm>
#include <utility>

namespace rnicd::core {

CqNotifyType CombineArms(CqNotifyType first, CqNotifyType second) {
  if (first == CqNotifyType::kAny || second == CqNotifyType::kAny) {
    return CqNotifyType::kAny;
  }
  return first == CqNotifyType::kSolicited ? first : second;
}

void CqNotifier::OnPushed(bool is_waking) {
  ++pushed_;
  if (is_waking) {
    last_waking_ = pushed_;
  }
}

// NDK: when the queue is armed for a completion newer than the last notification, now; while one is in progress, later.
CqNotifier::Due CqNotifier::Begin(bool dead) {
  if (!may_begin()) {
    return Due::kNothing;
  }
  const uint64_t newest = *armed_ == CqNotifyType::kAny         ? pushed_
                          : *armed_ == CqNotifyType::kSolicited ? last_waking_
                                                                : 0;
  if (newest <= std::max(notified_, taken_) && !dead) {
    return Due::kNothing;
  }
  armed_.reset();
  notified_ = pushed_;
  return std::exchange(in_progress_, true) ? Due::kNotice : Due::kNoticeAndEvent;
}

}  // namespace rnicd::core
