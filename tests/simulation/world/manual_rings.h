#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "daemon/core/ring/ring.h"
#include "daemon/core/ring/ring_host.h"
#include "daemon/core/session/session.h"
#include "daemon/rings/entry_runner.h"
#include "tests/simulation/world/witness.h"

namespace rnicd::simulation {

// Serves rings without a thread: a ring's entries are executed when its client's step says so.
class ManualRings final : public core::RingHost {
 public:
  // `witness` must outlive this.
  explicit ManualRings(Witness& witness) : witness_(witness) {}

  void Attach(std::shared_ptr<core::Ring> ring) override { rings_.push_back(std::move(ring)); }
  void Detach(const std::shared_ptr<core::Ring>& ring, std::function<void()> done) override {
    std::erase(rings_, ring);
    done();
  }
  core::RingCounts Counts() const override { return {}; }

  // The ring that was opened last.
  const std::shared_ptr<core::Ring>& newest() const { return rings_.back(); }
  // Rings that are served.
  size_t size() const { return rings_.size(); }
  // Executes everything that was submitted. False if the ring's indices are impossible.
  bool Serve(const std::shared_ptr<core::Ring>& ring, const core::Session& session, const core::SessionGuard& guard) {
    ring::Submission entry;
    ring::DaemonEnd::Next next = ring->end().Peek(&entry);
    for (; next == ring::DaemonEnd::Next::kEntry; next = ring->end().Peek(&entry)) {
      const uint32_t unfinished = ring->end().unfinished();
      runner_.Run({.ring = ring, .session = &session, .submitted = entry}, guard);
      const bool completed = ring->end().unfinished() == unfinished;
      if (completed && witness_.Plants(Canary::kOutcomeTwice)) {
        ring->Complete({.user_data = entry.user_data, .opcode = entry.opcode});
      }
    }
    return next == ring::DaemonEnd::Next::kNothing;
  }

 private:
  rings::EntryRunner runner_;
  Witness& witness_;
  std::vector<std::shared_ptr<core::Ring>> rings_;
};

}  // namespace rnicd::simulation
