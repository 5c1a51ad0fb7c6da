#pragma once

#include <vector>

#include "base/files/file_watch.h"

namespace rnicd::simulation {

// Says of every file that it has ended, so that nothing lingers: the model releases and forgets in one step. What a
// client keeps is tested where the kernel says it (LingeringTest, tests/integration/objects/lingering_test.cc).
class ForgetfulWatch final : public FileWatch {
 public:
  absl::StatusOr<Id> Add(int /*fd*/) override { return kAnyFile; }
  std::vector<Id> TakeEnded() override { return {kAnyFile}; }

 private:
  static constexpr Id kAnyFile = 1;
};

}  // namespace rnicd::simulation
