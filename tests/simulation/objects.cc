#include "tests/simulation/objects.h"

#include <algorithm>

namespace rnicd::simulation {

uint64_t Request::size() const {
  if (inline_data.has_value()) {
    return inline_data->size();
  }
  uint64_t sum = 0;
  for (const Entry& entry : entries) {
    sum += entry.length;
  }
  return sum;
}

void CompletionQueue::NotifyWhenDue() {
  if (silent || notifying || !armed.has_value()) {
    return;
  }
  uint64_t newest = 0;
  if (*armed == core::CqNotifyType::kAny) {
    newest = pushed;
  } else if (*armed == core::CqNotifyType::kSolicited) {
    newest = waking;
  }
  if (overrun || newest > std::max(notified, taken)) {
    armed.reset();
    notified = pushed;
    notifying = true;
  }
}

bool CompletionQueue::Push(const core::CqResult& result) {
  if (overrun) {
    return false;
  }
  if (results.size() >= depth) {
    overrun = true;
    results.clear();
  } else {
    results.push_back(result);
    ++pushed;
    if (result.completion.solicited || result.completion.status != NtStatus::kSuccess) {
      waking = pushed;
    }
  }
  NotifyWhenDue();
  return overrun;
}

// The strongest request wins: ANY over SOLICITED over ERRORS.
void CompletionQueue::Arm(core::CqNotifyType type) {
  const auto strength = [](core::CqNotifyType each) {
    return each == core::CqNotifyType::kAny ? 2 : each == core::CqNotifyType::kSolicited ? 1 : 0;
  };
  if (!armed.has_value() || strength(type) > strength(*armed)) {
    armed = type;
  }
  NotifyWhenDue();
}

void CompletionQueue::Fetched() {
  notifying = false;
  silent = overrun;
  NotifyWhenDue();
}

}  // namespace rnicd::simulation
