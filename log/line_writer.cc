#include "log/line_writer.h"

#include <atomic>
#include <utility>
#include <vector>

#include "base/mutex.h"

namespace rnicd::log {

// Owned by the writer and by its thread, because either may outlive the other.
struct LineWriter::Queue {
  explicit Queue(Options given) : options(std::move(given)) {}

  struct Batch {
    std::vector<Line> lines;
    // Lines that came after these and were dropped because the queue was full. After the first dropped line all further
    // ones are dropped, so that the gap is in one place.
    uint64_t refused = 0;
    WallTime first_refused;
  };

  void Run();
  // Waits for lines. Empty when no more will come.
  Batch Take();
  bool HasWork() const RNICD_REQUIRES(mutex) { return !waiting.lines.empty() || waiting.refused > 0; }

  const Options options;
  std::atomic<uint64_t> lost{0};
  // The thread was abandoned, and must not write any more.
  std::atomic<bool> abandoned{false};
  Mutex mutex;
  ConditionVariable changed;
  Batch waiting RNICD_GUARDED_BY(mutex);
  size_t waiting_bytes RNICD_GUARDED_BY(mutex) = 0;
  bool writing RNICD_GUARDED_BY(mutex) = false;
  bool stopping RNICD_GUARDED_BY(mutex) = false;
};

void LineWriter::Queue::Run() {
  // Lost lines that are not reported yet.
  uint64_t missing = 0;
  WallTime first_missing;
  const auto miss = [&](uint64_t count, WallTime first) {
    first_missing = missing == 0 ? first : first_missing;
    missing += count;
  };
  const auto write = [&](const Line& line) { return !abandoned.load() && options.write(line); };
  const auto tell = [&] {
    if (missing > 0 && write(options.loss(missing, first_missing))) {
      missing = 0;
    }
  };
  for (Batch batch = Take(); !batch.lines.empty() || batch.refused > 0; batch = Take()) {
    for (const Line& line : batch.lines) {
      tell();
      if (!write(line)) {
        lost.fetch_add(1);
        miss(1, line.time);
      }
    }
    if (batch.refused > 0) {
      miss(batch.refused, batch.first_refused);
    }
    tell();
  }
}

LineWriter::Queue::Batch LineWriter::Queue::Take() {
  MutexLock lock(mutex);
  writing = false;
  changed.NotifyAll();
  while (!HasWork() && !stopping) {
    changed.Wait(mutex);
  }
  writing = HasWork();
  waiting_bytes = 0;
  return std::exchange(waiting, {});
}

LineWriter::LineWriter(Options options)
    : queue_(std::make_shared<Queue>(std::move(options))), thread_([queue = queue_] { queue->Run(); }) {}

LineWriter::~LineWriter() {
  Queue& queue = *queue_;
  {
    MutexLock lock(queue.mutex);
    queue.stopping = true;
  }
  queue.changed.NotifyAll();
  if (!thread_.EndBy(std::chrono::steady_clock::now() + queue.options.stop_timeout)) {
    queue.abandoned.store(true);
  }
}

void LineWriter::Add(Line line) {
  Queue& queue = *queue_;
  const size_t bytes = sizeof(Line) + line.text.size();
  {
    MutexLock lock(queue.mutex);
    Queue::Batch& waiting = queue.waiting;
    if (waiting.refused > 0 || bytes > queue.options.waiting_bytes_max - queue.waiting_bytes) {
      waiting.first_refused = waiting.refused == 0 ? line.time : waiting.first_refused;
      ++waiting.refused;
      queue.lost.fetch_add(1);
    } else {
      queue.waiting_bytes += bytes;
      waiting.lines.push_back(std::move(line));
    }
  }
  queue.changed.NotifyAll();
}

bool LineWriter::FlushUntil(Instant deadline) {
  Queue& queue = *queue_;
  MutexLock lock(queue.mutex);
  while (queue.HasWork() || queue.writing) {
    if (!queue.changed.WaitUntil(queue.mutex, deadline)) {
      return !queue.HasWork() && !queue.writing;
    }
  }
  return true;
}

uint64_t LineWriter::lost() const { return queue_->lost.load(); }

}  // namespace rnicd::log
