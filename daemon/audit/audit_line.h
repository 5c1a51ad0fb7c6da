#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "base/status.h"
#include "daemon/core/observer.h"

namespace rnicd::audit {

using WallTime = std::chrono::system_clock::time_point;

// A decision on its way to the file: all that its line says, with nothing of the call in it any more.
struct AuditLine {
  WallTime time;
  std::string what;
  absl::StatusCode code = absl::StatusCode::kOk;
  // What a failure of MakeError says.
  ErrorInfo error;
  // Nothing when the daemon itself decided. Without its process.
  std::optional<core::Caller> caller;
  std::string tenant;
  core::WorkloadName workload;
  // "rnicd.io/memory-64mi=m-0,m-1"; empty when the tenant's grant covers none.
  std::string devices;
  uint64_t session_id = 0;
  std::string object;
  std::string note;
};

AuditLine LineOf(const core::Decision& decision, WallTime time);

// One JSON object and the end of the line; the keys stand in README.md. Any bytes give valid JSON.
std::string Format(const AuditLine& line);
// The line that stands for `count` others.
std::string FormatLost(WallTime time, uint64_t count);

}  // namespace rnicd::audit
