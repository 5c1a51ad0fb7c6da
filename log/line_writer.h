#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/system/abandonable_thread.h"
#include "base/wall_time.h"
#include "log/level.h"

namespace rnicd::log {

// A finished line, with its end.
struct Line {
  Level level = Level::kInfo;
  WallTime time;
  std::string text;
};

// Writes lines in their order, on a thread of its own, so that no caller waits for the process that reads them. Lines
// are lost when the queue is full or the write fails; the next line that is written reports how many.
// Lifetime: the destructor waits for the last lines, up to stop_timeout: then it abandons the thread, with the queue.
// Threads:  safe.
class LineWriter {
 public:
  struct Options {
    // Writes a line; may block without a limit. False when the line is lost.
    std::function<bool(const Line&)> write;
    // Makes the line that reports `count` lost lines, the first of them of that time.
    std::function<Line(uint64_t count, WallTime first)> loss;
    // Bytes that may wait, and as many may be with the thread.
    size_t waiting_bytes_max = size_t{1} << 20;
    // Timeout of the destructor's wait.
    std::chrono::milliseconds stop_timeout{2000};
  };

  explicit LineWriter(Options options);
  ~LineWriter();
  LineWriter(const LineWriter&) = delete;
  LineWriter& operator=(const LineWriter&) = delete;

  // Never blocks.
  void Add(Line line);
  // False when lines still wait at the deadline.
  bool FlushUntil(Instant deadline);
  // Number of lost lines since the start.
  uint64_t lost() const;

 private:
  struct Queue;

  const std::shared_ptr<Queue> queue_;
  AbandonableThread thread_;
};

}  // namespace rnicd::log
