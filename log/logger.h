#pragma once

#include <atomic>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/clock.h"
#include "log/level.h"

namespace rnicd::log {

class LineWriter;

// "debug", "info", "warning", "error"; empty for any other word.
std::optional<Level> LevelFromName(std::string_view name);
std::string_view LevelName(Level level);

// One data item of a line. Never a token, a ticket or a pointer. Text is cut after kTextBytesMax bytes.
struct Field {
  static constexpr size_t kTextBytesMax = 8192;

  std::string_view key;
  std::variant<std::string, int64_t, uint64_t> value;

  Field(std::string_view name, std::string_view text) : key(name), value(std::string(text.substr(0, kTextBytesMax))) {}
  Field(std::string_view name, const char* text) : Field(name, std::string_view(text)) {}
  Field(std::string_view name, const std::string& text) : Field(name, std::string_view(text)) {}
  Field(std::string_view name, std::signed_integral auto number) : key(name), value(static_cast<int64_t>(number)) {}
  Field(std::string_view name, std::unsigned_integral auto number) : key(name), value(static_cast<uint64_t>(number)) {}
};

struct Options {
  Level level = Level::kInfo;
  // True for one JSON object per line; false for text.
  bool json = false;
  // Warnings and errors go to the system's event log as well. Only on Windows.
  bool event_log = false;
};

// Structured lines on stderr, and in the event log if Options::event_log is set: a constant message, and data in
// fields. No caller waits for the reader of the lines (line_writer.h).
// Lifetime: starts a thread; the destructor waits for the last lines with a timeout.
// Threads:  safe.
class Logger {
 public:
  explicit Logger(const Options& options);
  ~Logger();

  Level level() const { return level_.load(); }
  void SetLevel(Level level);

  void Debug(std::string_view message, std::initializer_list<Field> fields = {}) const;
  void Info(std::string_view message, std::initializer_list<Field> fields = {}) const;
  void Warning(std::string_view message, std::initializer_list<Field> fields = {}) const;
  void Error(std::string_view message, std::initializer_list<Field> fields = {}) const;

  // For a process that ends without the destructor. False when lines still wait at the deadline.
  bool FlushUntil(Instant deadline) const;
  // Number of lines since the start that were lost, because the queue was full or they could not be written.
  uint64_t lost() const;

 private:
  void Write(Level level, std::string_view message, std::initializer_list<Field> fields) const;

  const bool json_;
  std::atomic<Level> level_;
  const std::unique_ptr<LineWriter> writer_;
};

// Timeout of the wait for the last lines when a process ends.
inline constexpr std::chrono::seconds kLastLines{2};

// The text after time and level: `session opened uid=65534 label="a b"`, or the members of the JSON object. Separate
// from Logger so that tests can read it.
std::string FormatText(std::string_view message, std::initializer_list<Field> fields);
std::string FormatJson(std::string_view message, std::initializer_list<Field> fields);

}  // namespace rnicd::log
