#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "base/files/unique_fd.h"
#include "base/mutex.h"

namespace rnicd::test {

// Collects what a child process writes, so that the child never blocks on a full pipe.
// Lifetime: the destructor ends the thread, even while a process still holds the other end.
// Threads:  safe.
class PipeReader {
 public:
  explicit PipeReader(UniqueFd pipe);
  ~PipeReader();
  PipeReader(const PipeReader&) = delete;
  PipeReader& operator=(const PipeReader&) = delete;

  // All output so far.
  std::string Text() const;
  // The next unread line, without its newline; nullopt on timeout or at the end of the pipe.
  std::optional<std::string> NextLine(std::chrono::milliseconds limit);
  // True once the text contains `part`; false on timeout.
  bool WaitFor(std::string_view part, std::chrono::milliseconds limit);
  // True once every writer has closed the pipe; false on timeout.
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
