#include "tests/simulation/model/objects.h"

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
  // In shared memory a notification is over as soon as it is written.
  if (silent || (notifying && mapped == nullptr) || !armed.has_value()) {
    return;
  }
  uint64_t newest = 0;
  if (*armed == CqNotifyType::kAny) {
    newest = pushed;
  } else if (*armed == CqNotifyType::kSolicited) {
    newest = waking;
  }
  if (overrun || newest > std::max(notified, taken)) {
    armed.reset();
    notified = pushed;
    notifying = true;
    ++notifications;
  }
}

bool CompletionQueue::Push(const Completion& completion, bool solicited) {
  if (overrun) {
    return false;
  }
  if (results.size() >= depth) {
    overrun = true;
    results.clear();
  } else {
    results.push_back(completion);
    ++pushed;
    if (solicited || !completion.ok()) {
      waking = pushed;
    }
  }
  NotifyWhenDue();
  return overrun;
}

// The strongest request wins: ANY over SOLICITED over ERRORS.
void CompletionQueue::Arm(CqNotifyType type) {
  const auto strength = [](CqNotifyType each) {
    return each == CqNotifyType::kAny ? 2 : each == CqNotifyType::kSolicited ? 1 : 0;
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
