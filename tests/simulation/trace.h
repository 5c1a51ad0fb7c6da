#pragma once

#include <cstdint>
#include <deque>
#include <string>

namespace rnicd::simulation {

// What happened, step by step: the last steps for whoever looks for a fault, and a digest of all of them, by which two
// runs are compared.
class Trace {
 public:
  // With `live`, steps are printed as they happen: what to do with a seed that crashes or hangs.
  explicit Trace(bool live) : live_(live) {}

  void BeginStep(const std::string& what);
  // Adds to the step at hand.
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
