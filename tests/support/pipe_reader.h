#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "base/mutex.h"
#include "base/unique_fd.h"

namespace rnicd::test {

// Collects what a child process writes, so that the child never blocks on a full pipe.
// Lifetime: ends its thread when it goes, even while some process still holds the other end.
// Threads:  safe.
class PipeReader {
 public:
  explicit PipeReader(UniqueFd pipe);
  ~PipeReader();
  PipeReader(const PipeReader&) = delete;
  PipeReader& operator=(const PipeReader&) = delete;

  // Everything so far.
  std::string Text() const;
  // The next line that was not fetched yet, without its end; nothing when none came in time or the pipe is at its end.
  std::optional<std::string> NextLine(std::chrono::milliseconds limit);
  // True when the text holds `part`, now or in time.
  bool WaitFor(std::string_view part, std::chrono::milliseconds limit);
  // True when every writer has closed the pipe.
  bool WaitForEnd(std::chrono::milliseconds limit);

 private:
  void Run();
  bool ReadOnce();

  const UniqueFd pipe_;
  const UniqueFd stop_;
  mutable Mutex mutex_;
  ConditionVariable changed_;
  std::string text_ RNICD_GUARDED_BY(mutex_);
  size_t fetched_ RNICD_GUARDED_BY(mutex_) = 0;
  bool ended_ RNICD_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace rnicd::test
