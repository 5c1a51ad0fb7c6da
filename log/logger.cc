#include "log/logger.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/wall_time.h"
#include "log/line_sink.h"
#include "log/line_writer.h"

namespace rnicd::log {
namespace {

// Quotes text that could be mistaken for something else.
std::string Quoted(const std::string& text) {
  const auto plain = [](char c) { return c > ' ' && c <= '~' && c != '"' && c != '=' && c != '\\'; };
  if (!text.empty() && std::all_of(text.begin(), text.end(), plain)) {
    return text;
  }
  return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

std::string ToText(const Field& field) {
  if (const auto* text = std::get_if<std::string>(&field.value)) {
    return Quoted(*text);
  }
  if (const auto* number = std::get_if<int64_t>(&field.value)) {
    return std::to_string(*number);
  }
  return std::to_string(std::get<uint64_t>(field.value));
}

constexpr std::array<std::pair<std::string_view, Level>, 4> kLevelNames = {
    {{"debug", Level::kDebug}, {"info", Level::kInfo}, {"warning", Level::kWarning}, {"error", Level::kError}}};

// The line with time and level in front, and its end.
Line Finish(bool json, Level level, WallTime time, std::string_view message, std::initializer_list<Field> fields) {
  std::string text = json ? R"({"time":")" + Rfc3339(time) + R"(","level":")" : Rfc3339(time) + " ";
  text.append(LevelName(level)).append(json ? R"(",)" : " ");
  text.append(json ? FormatJson(message, fields) : FormatText(message, fields)).append("\n");
  return {.level = level, .time = time, .text = std::move(text)};
}

}  // namespace

std::optional<Level> LevelFromName(std::string_view name) {
  for (const auto& [known, level] : kLevelNames) {
    if (known == name) {
      return level;
    }
  }
  return std::nullopt;
}

std::string_view LevelName(Level level) { return kLevelNames[static_cast<size_t>(level)].first; }

std::string FormatText(std::string_view message, std::initializer_list<Field> fields) {
  std::string line(message);
  for (const Field& field : fields) {
    line.append(" ").append(field.key).append("=").append(ToText(field));
  }
  return line;
}

std::string FormatJson(std::string_view message, std::initializer_list<Field> fields) {
  nlohmann::ordered_json object;
  object["message"] = message;
  for (const Field& field : fields) {
    std::visit([&](const auto& value) { object[std::string(field.key)] = value; }, field.value);
  }
  return object.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace).substr(1);
}

Logger::Logger(const Options& options)
    : json_(options.json),
      level_(options.level),
      writer_(std::make_unique<LineWriter>(
          LineWriter::Options{.write = LineSink(options.event_log),
                              .loss =
                                  [json = options.json](uint64_t count, WallTime first) {
                                    return Finish(json, Level::kWarning, first, "lines lost", {{"count", count}});
                                  },
                              .stop_timeout = kLastLines})) {}

Logger::~Logger() = default;

void Logger::SetLevel(Level level) { level_.store(level); }

bool Logger::FlushUntil(Instant deadline) const { return writer_->FlushUntil(deadline); }

uint64_t Logger::lost() const { return writer_->lost(); }

void Logger::Debug(std::string_view message, std::initializer_list<Field> fields) const {
  Write(Level::kDebug, message, fields);
}
void Logger::Info(std::string_view message, std::initializer_list<Field> fields) const {
  Write(Level::kInfo, message, fields);
}
void Logger::Warning(std::string_view message, std::initializer_list<Field> fields) const {
  Write(Level::kWarning, message, fields);
}
void Logger::Error(std::string_view message, std::initializer_list<Field> fields) const {
  Write(Level::kError, message, fields);
}

void Logger::Write(Level level, std::string_view message, std::initializer_list<Field> fields) const {
  if (level >= level_.load()) {
    writer_->Add(Finish(json_, level, std::chrono::system_clock::now(), message, fields));
  }
}

}  // namespace rnicd::log
