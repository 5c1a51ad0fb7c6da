#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "base/status.h"
#include "base/wall_time.h"
#include "daemon/core/tenant/observation.h"

namespace rnicd::audit {

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
  // Decisions that this line stands for, and the times of the first and the last. 0 for a line of one decision.
  uint64_t times = 0;
  WallTime first;
  WallTime last;
  // The owner whose lines were left out; empty but for a line that reports this.
  std::string left_out_of;
};

AuditLine LineOf(const core::Decision& decision, WallTime time);

// A line that reports `times` lines of an owner that were left out.
AuditLine LeftOutLine(const std::string& owner, uint64_t times, WallTime first, WallTime last);
// Number of decisions that are lost with the line.
inline uint64_t DecisionsOf(const AuditLine& line) { return line.times == 0 ? 1 : line.times; }

// One JSON object and a line end; README.md lists the keys. Valid JSON for any bytes.
std::string Format(const AuditLine& line);
// At least the bytes of Format, without the cost of making it.
size_t BytesMax(const AuditLine& line);
// A line that reports `count` lost lines.
std::string FormatLost(WallTime time, uint64_t count);

}  // namespace rnicd::audit
