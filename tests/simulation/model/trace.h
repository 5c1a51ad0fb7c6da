#pragma once

#include <cstdint>
#include <deque>
#include <string>

namespace rnicd::simulation {

// The steps of a run: the last ones, for debugging, and a digest of all of them, to compare two runs.
class Trace {
 public:
  // With `live`, steps are printed as they happen: for a seed that crashes or hangs.
  explicit Trace(bool live) : live_(live) {}

  void BeginStep(const std::string& what);
  // Adds to the current step.
  void Add(const std::string& what);
  void EndStep();

  uint64_t steps() const { return steps_; }
  uint64_t digest() const { return digest_; }
  const std::deque<std::string>& last() const { return last_; }

 private:
  void Take(const std::string& text);

  const bool live_;
  uint64_t steps_ = 0;
  uint64_t digest_ = 0xcbf29ce484222325;
  std::deque<std::string> last_;
};

}  // namespace rnicd::simulation
