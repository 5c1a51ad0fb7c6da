#include "log/line_writer.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/mutex.h"

namespace rnicd::log {
namespace {

constexpr std::chrono::seconds kLong{60};
constexpr size_t kBytesOfALetter = sizeof(Line) + 1;

// A reader of the lines, which may stop.
class LineReader {
 public:
  explicit LineReader(bool reads) : reads_(reads) {}

  // Returns when the line is read, with false if it cannot be written.
  bool Read(const Line& line) {
    MutexLock lock(mutex_);
    held_up_ = !reads_;
    changed_.NotifyAll();
    while (!reads_) {
      changed_.Wait(mutex_);
    }
    if (!broken_) {
      lines_.push_back(line.text);
    }
    return !broken_;
  }
  void AwaitHeldUp() {
    MutexLock lock(mutex_);
    while (!held_up_) {
      changed_.Wait(mutex_);
    }
  }
  void BeginReading() {
    MutexLock lock(mutex_);
    reads_ = true;
    changed_.NotifyAll();
  }
  void Break(bool broken) {
    MutexLock lock(mutex_);
    broken_ = broken;
  }
  std::vector<std::string> lines() {
    MutexLock lock(mutex_);
    return lines_;
  }

 private:
  Mutex mutex_;
  ConditionVariable changed_;
  bool reads_ RNICD_GUARDED_BY(mutex_);
  bool held_up_ RNICD_GUARDED_BY(mutex_) = false;
  bool broken_ RNICD_GUARDED_BY(mutex_) = false;
  std::vector<std::string> lines_ RNICD_GUARDED_BY(mutex_);
};

WallTime At(int second) { return WallTime(std::chrono::seconds(second)); }

class LineWriterTest : public testing::Test {
 protected:
  std::unique_ptr<LineWriter> Writer(bool reads, size_t waiting_bytes_max = size_t{1} << 20,
                                     std::chrono::milliseconds stop_timeout = kLong) {
    reader_ = std::make_shared<LineReader>(reads);
    return std::make_unique<LineWriter>(
        LineWriter::Options{.write = [reader = reader_](const Line& line) { return reader->Read(line); },
                            .loss =
                                [](uint64_t count, WallTime first) {
                                  const auto second = std::chrono::floor<std::chrono::seconds>(first);
                                  return Line{.text = std::to_string(count) + " lost from " +
                                                      std::to_string(second.time_since_epoch().count())};
                                },
                            .waiting_bytes_max = waiting_bytes_max,
                            .stop_timeout = stop_timeout});
  }
  static void Flush(LineWriter& writer) { EXPECT_TRUE(writer.FlushUntil(std::chrono::steady_clock::now() + kLong)); }

  std::shared_ptr<LineReader> reader_;
};

using Texts = std::vector<std::string>;

TEST_F(LineWriterTest, LinesComeInTheirOrder) {
  const auto writer = Writer(/*reads=*/true);
  for (const char* const text : {"a", "b", "c"}) {
    writer->Add({.text = text});
  }
  Flush(*writer);
  EXPECT_EQ(reader_->lines(), (Texts{"a", "b", "c"}));
  EXPECT_EQ(writer->lost(), 0u);
}

TEST_F(LineWriterTest, AReaderThatStopsHoldsUpNobodyAndTheGapIsSaidInItsPlace) {
  const auto writer = Writer(/*reads=*/false, 2 * kBytesOfALetter);
  writer->Add({.time = At(1), .text = "a"});
  reader_->AwaitHeldUp();
  for (int second = 2; second <= 5; ++second) {
    writer->Add({.time = At(second), .text = std::string(1, static_cast<char>('a' + second - 1))});
  }
  // Even where it would find room.
  writer->Add({.time = At(6), .text = ""});
  EXPECT_EQ(writer->lost(), 3u);
  EXPECT_FALSE(writer->FlushUntil(std::chrono::steady_clock::now()));
  reader_->BeginReading();
  Flush(*writer);
  writer->Add({.time = At(7), .text = "g"});
  Flush(*writer);
  EXPECT_EQ(reader_->lines(), (Texts{"a", "b", "c", "3 lost from 4", "g"}));
  EXPECT_EQ(writer->lost(), 3u);
}

TEST_F(LineWriterTest, ALineThatIsLongerThanTheQueueIsLost) {
  const auto writer = Writer(/*reads=*/true, kBytesOfALetter);
  writer->Add({.time = At(1), .text = "too long"});
  Flush(*writer);
  EXPECT_EQ(reader_->lines(), (Texts{"1 lost from 1"}));
}

TEST_F(LineWriterTest, WhatCannotBeWrittenIsCountedAndSaidBeforeTheNextLine) {
  const auto writer = Writer(/*reads=*/true);
  reader_->Break(true);
  writer->Add({.time = At(1), .text = "a"});
  Flush(*writer);
  writer->Add({.time = At(2), .text = "b"});
  Flush(*writer);
  EXPECT_EQ(writer->lost(), 2u);
  reader_->Break(false);
  writer->Add({.time = At(3), .text = "c"});
  Flush(*writer);
  EXPECT_EQ(reader_->lines(), (Texts{"2 lost from 1", "c"}));
}

TEST_F(LineWriterTest, TheEndWritesWhatWaits) {
  auto writer = Writer(/*reads=*/true);
  constexpr int kLines = 1000;
  for (int line = 0; line < kLines; ++line) {
    writer->Add({.text = std::to_string(line)});
  }
  writer.reset();
  EXPECT_EQ(reader_->lines().size(), size_t{kLines});
}

TEST_F(LineWriterTest, TheEndLeavesAThreadThatIsHeldUpBehind) {
  auto writer = Writer(/*reads=*/false, size_t{1} << 20, std::chrono::milliseconds(0));
  writer->Add({.text = "a"});
  reader_->AwaitHeldUp();
  writer->Add({.text = "b"});
  writer.reset();
  const std::weak_ptr<LineReader> held = reader_;
  reader_->BeginReading();
  reader_.reset();
  // The thread ends, and destroys what it owns.
  while (!held.expired()) {
    std::this_thread::yield();
  }
}

}  // namespace
}  // namespace rnicd::log
