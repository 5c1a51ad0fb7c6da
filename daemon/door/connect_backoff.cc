#include "daemon/door/connect_backoff.h"

#include <algorithm>

namespace rnicd::door {

std::chrono::milliseconds ConnectBackoff::Left(int32_t pid, Instant now) const {
  const auto found = entries_.find(pid);
  return found != entries_.end() && now < found->second.until
             ? std::chrono::ceil<std::chrono::milliseconds>(found->second.until - now)
             : std::chrono::milliseconds(0);
}

void ConnectBackoff::Refused(int32_t pid, Instant now) {
  if (pid == 0) {
    return;
  }
  const auto is_over = [now](const auto& entry) { return now >= entry.second.until + kLongest; };
  if (entries_.size() >= kEntriesMax) {
    std::erase_if(entries_, is_over);
  }
  const auto found = entries_.find(pid);
  if (found == entries_.end() || is_over(*found)) {
    if (entries_.size() < kEntriesMax) {
      entries_[pid] = {.until = now + kFirst, .period = kFirst};
    }
    return;
  }
  Entry& entry = found->second;
  entry.period = std::min(2 * entry.period, kLongest);
  entry.until = now + entry.period;
}

}  // namespace rnicd::door
