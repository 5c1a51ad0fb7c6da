#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "daemon/core/tenant/observation.h"

namespace rnicd::status_page {

using WallTime = std::chrono::system_clock::time_point;

// A refusal, or many of the same kind.
struct Failure {
  // Identifies the row as long as it is kept; never reused.
  uint64_t number = 0;
  WallTime first;
  WallTime last;
  uint64_t count = 0;
  std::string what;
  std::string tenant;
  // Process and user ID of the client; both 0 when the daemon itself decided.
  int32_t pid = 0;
  uint32_t uid = 0;
  // Name of an ErrorReason, or of the status code where there is no reason.
  std::string reason;
  // The reason's sentence, for people.
  std::string_view sentence;
  std::string field;
  std::string note;
};

// The latest refusals and failures. A flood of the same refusal is one row with a count, and when there is no room the
// tenant with the most rows loses its oldest: no tenant can push out the rows of others.
// Threads: safe. A decision that was not refused costs one comparison.
class RecentFailures final : public core::Observer {
 public:
  static constexpr size_t kMost = 100;

  explicit RecentFailures(std::function<WallTime()> now = std::chrono::system_clock::now) : now_(std::move(now)) {}

  // Handles decisions only.
  void Observe(const core::Observation& observation) override;
  bool HeedsSuccesses() const override { return false; }

  // All rows, newest first.
  std::vector<Failure> List() const;

 private:
  void Add(const core::Decision& decision);
  Failure* Same(const core::Decision& decision, std::string_view reason) RNICD_REQUIRES(mutex_);
  void MakeRoom() RNICD_REQUIRES(mutex_);

  const std::function<WallTime()> now_;
  mutable Mutex mutex_;
  // Unordered.
  std::vector<Failure> rows_ RNICD_GUARDED_BY(mutex_);
  uint64_t next_number_ RNICD_GUARDED_BY(mutex_) = 1;
};

}  // namespace rnicd::status_page
