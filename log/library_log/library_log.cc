#include "log/library_log/library_log.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/mutex.h"

namespace rnicd::library_log {
namespace {

// Longest text of a line; a client may have chosen parts of it.
constexpr size_t kTextBytesMax = 1024;
// gRPC does not report whether it aborts the process after a line.
constexpr std::chrono::milliseconds kMayBeLast{100};

// The libraries take plain functions, so the way from these to the object is global. The lock is held while a line is
// written, so that the object is not destroyed meanwhile.
Mutex active_mutex;
LibraryLog* active RNICD_GUARDED_BY(active_mutex) = nullptr;

std::string_view NameOf(Library library) { return library == Library::kProtobuf ? "protobuf" : "grpc"; }

// "wire_format_lite.cc:619"
std::string SourceOf(const LibraryLine& line) {
  return std::string(line.file.substr(line.file.rfind('/') + 1)) + ":" + std::to_string(line.line);
}

}  // namespace

void WriteLibraryLine(const LibraryLine& line) {
  MutexLock lock(active_mutex);
  if (active != nullptr) {
    active->Write(line);
  }
}

LibraryLog::LibraryLog(const log::Logger& logger, const Clock& clock)
    : logger_(logger), protobuf_budget_(clock, {}), grpc_budget_(clock, {}) {
  {
    MutexLock lock(active_mutex);
    active = this;
  }
  RouteProtobufLines();
}

LibraryLog::~LibraryLog() {
  MutexLock lock(active_mutex);
  active = nullptr;
}

void LibraryLog::Write(const LibraryLine& line) {
  log::LineBudget& budget = line.library == Library::kProtobuf ? protobuf_budget_ : grpc_budget_;
  const std::optional<uint64_t> dropped = budget.Admit();
  if (!dropped.has_value() && !line.is_last) {
    return;
  }
  const auto write = line.is_last ? &log::Logger::Error : &log::Logger::Warning;
  (logger_.*write)("library message", {{"library", NameOf(line.library)},
                                       {"source", SourceOf(line)},
                                       {"text", line.text.substr(0, kTextBytesMax)},
                                       {"dropped", dropped.value_or(0)}});
  if (line.is_last || line.library == Library::kGrpc) {
    logger_.FlushUntil(std::chrono::steady_clock::now() + (line.is_last ? log::kLastLines : kMayBeLast));
  }
}

}  // namespace rnicd::library_log
