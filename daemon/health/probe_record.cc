#include "daemon/health/probe_record.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace rnicd::health {

ProbeRecord::ProbeRecord(std::string adapter, std::chrono::nanoseconds timeout) : timeout_(timeout) {
  health_.adapter = std::move(adapter);
}

void ProbeRecord::Began(Instant now) {
  began_ = now;
  late_ = false;
}

void ProbeRecord::Ended(Instant now, const absl::Status& status) {
  CheckTimeout(now);
  health_.last_duration = now - *began_;
  began_.reset();
  if (!late_) {
    SetResult(now, status);
  }
}

void ProbeRecord::CheckTimeout(Instant now) {
  const std::optional<Instant> limit = late_at();
  if (!limit.has_value() || now < *limit) {
    return;
  }
  late_ = true;
  const auto timeout_ms = std::chrono::duration_cast<std::chrono::milliseconds>(timeout_).count();
  SetResult(now, MakeErrorWithDetail(ErrorReason::DEVICE_FAILED,
                                     absl::StrCat("a probe did not return within ", timeout_ms, " ms")));
}

std::optional<Instant> ProbeRecord::late_at() const {
  if (!began_.has_value() || late_) {
    return std::nullopt;
  }
  return *began_ + timeout_;
}

void ProbeRecord::SetResult(Instant now, const absl::Status& status) {
  (status.ok() ? health_.probes_ok : health_.probes_failed) += 1;
  if (!evaluated_ || health_.healthy != status.ok()) {
    health_.since = now;
  }
  evaluated_ = true;
  health_.healthy = status.ok();
  health_.status = status;
}

}  // namespace rnicd::health
