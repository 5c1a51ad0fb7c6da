#include "client/ctl/output/output.h"

#include <cerrno>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/strings/cord.h"
#include "base/status.h"
#include "client/cpp/transport_failure.h"
#include "client/ctl/line/command_line.h"

namespace rnicd::ctl {
namespace {

constexpr char kReaderGonePayload[] = "rnicctl/reader-gone";

// The daemon's error, if the daemon refused. Its internal errors are kInternal, so a failure with another code and no
// reason was raised by this program.
std::optional<ErrorInfo> InfoOf(const absl::Status& status) {
  if (IsUsageError(status) || IsTransportFailure(status)) {
    return std::nullopt;
  }
  ErrorInfo info = ErrorInfoOf(status);
  const bool no_reason = info.reason == ErrorReason::INTERNAL_FAULT && status.code() != absl::StatusCode::kInternal;
  return no_reason ? std::nullopt : std::optional(std::move(info));
}

std::string ReasonName(ErrorReason reason) {
  const ErrorReasonRow& row = RowOf(reason);
  return row.reason == reason ? std::string(row.name) : "REASON_" + std::to_string(static_cast<uint32_t>(reason));
}

std::string CodeName(const absl::Status& status) {
  return IsUsageError(status) ? "USAGE" : absl::StatusCodeToString(status.code());
}

}  // namespace

void Output::Result(const std::string& text, const Json& json) { Write(json_ ? json.dump(2) + "\n" : text); }

void Output::Text(const std::string& text) { Write(text); }

void Output::Write(const std::string& text) {
  errno = 0;
  if (out_ << text << std::flush || !written_.ok()) {
    return;
  }
  const int error = errno;
  written_ = absl::DataLossError("the output could not be written: " +
                                 std::generic_category().message(error == 0 ? EIO : error));
  if (error == EPIPE) {
    written_.SetPayload(kReaderGonePayload, absl::Cord());
  }
}

void Output::Error(const absl::Status& status) {
  if (status.GetPayload(kReaderGonePayload).has_value()) {
    return;
  }
  err_ << (json_ ? ErrorJson(status).dump() : ErrorLine(status)) << "\n" << std::flush;
}

void Output::Progress(const std::string& line) {
  // Back to the start of the line, and clear what is on it.
  constexpr std::string_view kClearLine = "\r\x1b[K";
  if (terminal_ && (shows_progress_ || !line.empty())) {
    err_ << kClearLine << line << std::flush;
    shows_progress_ = !line.empty();
  }
}

std::string ErrorLine(const absl::Status& status) {
  std::string line = "rnicctl: " + std::string(status.message());
  const std::optional<ErrorInfo> info = InfoOf(status);
  if (!info.has_value()) {
    return IsUsageError(status) ? line : line + " (" + CodeName(status) + ")";
  }
  line += " (" + ReasonName(info->reason) + ", " + std::string(NtStatusName(NtStatusOf(status)));
  if (!info->field.empty()) {
    line += ", field " + info->field;
  }
  if (info->limit != 0) {
    line += ", limit " + std::to_string(info->limit) + ", used " + std::to_string(info->used) + ", requested " +
            std::to_string(info->requested);
  }
  return line + ")";
}

Json ErrorJson(const absl::Status& status) {
  Json error = {{"code", CodeName(status)}, {"message", std::string(status.message())}};
  if (const std::optional<ErrorInfo> info = InfoOf(status)) {
    error["reason"] = ReasonName(info->reason);
    error["ntstatus"] = static_cast<uint32_t>(NtStatusOf(status));
    error["ntstatus_name"] = std::string(NtStatusName(NtStatusOf(status)));
    error["field"] = info->field;
    error["limit"] = info->limit;
    error["used"] = info->used;
    error["requested"] = info->requested;
  }
  return {{"error", error}};
}

int ExitCodeOf(const absl::Status& status) {
  if (status.ok()) {
    return 0;
  }
  return IsUsageError(status) ? 2 : 1;
}

}  // namespace rnicd::ctl
