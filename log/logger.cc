#include "log/logger.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "log/event_log.h"

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

spdlog::level::level_enum ToSpdlog(Level level) {
  switch (level) {
    case Level::kDebug:
      return spdlog::level::debug;
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kWarning:
      return spdlog::level::warn;
    case Level::kError:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

constexpr std::array<std::pair<std::string_view, Level>, 4> kLevelNames = {
    {{"debug", Level::kDebug}, {"info", Level::kInfo}, {"warning", Level::kWarning}, {"error", Level::kError}}};

constexpr char kTextPattern[] = "%Y-%m-%dT%H:%M:%S.%eZ %l %v";
// FormatJson adds the members after these two, without the opening brace.
constexpr char kJsonPattern[] = "{\"time\":\"%Y-%m-%dT%H:%M:%S.%eZ\",\"level\":\"%l\",%v";

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
      logger_(std::make_unique<spdlog::logger>("rnicd", std::make_shared<spdlog::sinks::stderr_sink_mt>())) {
  if (options.event_log) {
    AddEventLog(*logger_);
  }
  logger_->set_level(ToSpdlog(options.level));
  logger_->flush_on(spdlog::level::debug);
  logger_->set_pattern(options.json ? kJsonPattern : kTextPattern, spdlog::pattern_time_type::utc);
}

Logger::~Logger() = default;

void Logger::SetLevel(Level level) {
  level_.store(level);
  logger_->set_level(ToSpdlog(level));
}

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
  if (logger_->should_log(ToSpdlog(level))) {
    logger_->log(ToSpdlog(level), json_ ? FormatJson(message, fields) : FormatText(message, fields));
  }
}

}  // namespace rnicd::log
