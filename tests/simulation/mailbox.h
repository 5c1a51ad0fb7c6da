#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "daemon/core/session.h"
#include "tests/simulation/findings.h"
#include "tests/simulation/refusals.h"

namespace rnicd::simulation {

// The callbacks given to core: what came, and what must have come by the end of the step.
class Mailbox {
 public:
  struct Letter {
    uint64_t callback = 0;
    absl::Status status;
    std::optional<core::Registration> registration;
    std::optional<core::MemoryTicket> ticket;
    std::optional<core::Reclaimed> reclaimed;
  };

  // A number for a callback that will be given away.
  uint64_t Reserve() { return ++last_; }
  core::Done DoneFor(uint64_t callback);
  core::RegisterDone RegisterDoneFor(uint64_t callback);
  core::AllocateDone AllocateDoneFor(uint64_t callback);
  std::function<void(const core::Reclaimed&)> EndDoneFor(uint64_t callback);

  void Expect(uint64_t callback, Refusals why) { expected_.push_back({callback, std::move(why)}); }
  // Null when nothing came for it in this step.
  const Letter* Find(uint64_t callback) const;
  // Every callback that is due came once with an outcome the model allows, and none came that is not due.
  void CheckCallbacksComeOnce(Findings& findings);

 private:
  struct Expected {
    uint64_t callback = 0;
    Refusals why;
  };
  uint64_t last_ = 0;
  std::vector<Letter> letters_;
  std::vector<Expected> expected_;
};

}  // namespace rnicd::simulation
