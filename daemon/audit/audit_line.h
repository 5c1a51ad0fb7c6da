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

// A decision queued for the file: all data of its line, without references to the call.
struct AuditLine {
  WallTime time;
  std::string what;
  absl::StatusCode code = absl::StatusCode::kOk;
  // Reason and detail of a failure that was made by MakeError.
  ErrorInfo error;
  // The caller, without its process handle; empty when the daemon itself decided.
  std::optional<core::Caller> caller;
  std::string tenant;
  core::WorkloadName workload;
  // Devices of the tenant's grant: "rnicd.io/memory-64mi=m-0,m-1"; empty when it covers none.
  std::string devices;
  uint64_t session_id = 0;
  std::string object;
  std::string note;
};

AuditLine LineOf(const core::Decision& decision, WallTime time);

// One JSON object and a line end; README.md lists the keys. Valid JSON for any bytes.
std::string Format(const AuditLine& line);
// A line that reports `count` lost lines.
std::string FormatLost(WallTime time, uint64_t count);

}  // namespace rnicd::audit
