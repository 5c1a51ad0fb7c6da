#pragma once

#include <optional>
#include <string>
#include <utility>

namespace rnicd::simulation {

// The first invariant that did not hold.
struct Finding {
  // The name of the invariant, as in invariants.h.
  std::string invariant;
  std::string difference;
};

// The finding of a run. Only the first one counts: after it the model no longer matches core.
class Findings {
 public:
  void Report(std::string invariant, std::string difference) {
    if (!first_.has_value()) {
      first_ = Finding{std::move(invariant), std::move(difference)};
    }
  }
  bool any() const { return first_.has_value(); }
  const Finding& first() const { return *first_; }

 private:
  std::optional<Finding> first_;
};

}  // namespace rnicd::simulation
