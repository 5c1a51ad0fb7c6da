#include "tests/simulation/model/mailbox.h"

#include <algorithm>
#include <string>

namespace rnicd::simulation {

core::Done<> Mailbox::DoneFor(uint64_t callback) {
  return [this, callback](const absl::Status& status) { letters_.push_back({.callback = callback, .status = status}); };
}

core::Done<Registration> Mailbox::RegisterDoneFor(uint64_t callback) {
  return [this, callback](const absl::StatusOr<Registration>& outcome) {
    letters_.push_back({.callback = callback,
                        .status = outcome.status(),
                        .registration = outcome.ok() ? std::optional(*outcome) : std::nullopt});
  };
}

core::Done<core::MemoryTicket> Mailbox::AllocateDoneFor(uint64_t callback) {
  return [this, callback](const absl::StatusOr<core::MemoryTicket>& outcome) {
    letters_.push_back({.callback = callback,
                        .status = outcome.status(),
                        .ticket = outcome.ok() ? std::optional(*outcome) : std::nullopt});
  };
}

std::function<void(const core::Reclaimed&)> Mailbox::EndDoneFor(uint64_t callback) {
  return [this, callback](const core::Reclaimed& reclaimed) {
    letters_.push_back({.callback = callback, .reclaimed = reclaimed});
  };
}

const Mailbox::Letter* Mailbox::Find(uint64_t callback) const {
  const auto found = std::find_if(letters_.begin(), letters_.end(),
                                  [callback](const Letter& letter) { return letter.callback == callback; });
  return found != letters_.end() ? &*found : nullptr;
}

void Mailbox::CheckCallbacksComeOnce(Findings& findings) {
  for (const Letter& letter : letters_) {
    const auto due = std::find_if(expected_.begin(), expected_.end(),
                                  [&letter](const Expected& each) { return each.callback == letter.callback; });
    if (due == expected_.end()) {
      findings.Report("CallbacksComeOnce", "callback " + std::to_string(letter.callback) + " came unasked or again");
      return;
    }
    if (!due->why.Allows(letter.status)) {
      findings.Report("CallbacksComeOnce", "callback " + std::to_string(letter.callback) + " came with " +
                                               TextOf(letter.status) + " instead of " + due->why.Text());
      return;
    }
    expected_.erase(due);
  }
  if (!expected_.empty()) {
    findings.Report("CallbacksComeOnce",
                    "callback " + std::to_string(expected_.front().callback) + " did not come in its step");
  }
  letters_.clear();
}

}  // namespace rnicd::simulation
