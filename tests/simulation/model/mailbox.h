#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "daemon/core/session/session.h"
#include "tests/simulation/world/findings.h"
#include "tests/simulation/world/refusals.h"

namespace rnicd::simulation {

// The callbacks passed to core: which came, and which must have come by the end of the step.
class Mailbox {
 public:
  struct Letter {
    uint64_t callback = 0;
    absl::Status status;
    std::optional<Registration> registration;
    std::optional<core::MemoryTicket> ticket;
    std::optional<core::Reclaimed> reclaimed;
  };

  // Returns the number of a new callback.
  uint64_t Reserve() { return ++last_; }
  core::Done<> DoneFor(uint64_t callback);
  core::Done<Registration> RegisterDoneFor(uint64_t callback);
  core::Done<core::MemoryTicket> AllocateDoneFor(uint64_t callback);
  std::function<void(const core::Reclaimed&)> EndDoneFor(uint64_t callback);

  void Expect(uint64_t callback, Refusals why) { expected_.push_back({callback, std::move(why)}); }
  // Null if the callback did not come in this step.
  const Letter* Find(uint64_t callback) const;
  // Checks that every due callback came once with an outcome the model allows, and that no other came.
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
