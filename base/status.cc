#include "base/status.h"

#include <charconv>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace rnicd {
namespace {

// A payload of this type holds "reason limit used requested retry_after_ms field", so that a Status carries an
// ErrorInfo while base stays independent of the wire format.
constexpr char kPayloadType[] = "rnicd/error-info";

std::string Encode(const ErrorInfo& info) {
  return absl::StrCat(static_cast<uint32_t>(info.reason), " ", info.limit, " ", info.used, " ", info.requested, " ",
                      info.retry_after_ms, " ", info.field);
}

absl::Status WithInfo(absl::Status status, const ErrorInfo& info) {
  status.SetPayload(kPayloadType, absl::Cord(Encode(info)));
  return status;
}

// Removes the next number, and the space after it, from the front of `text`.
uint64_t TakeNumber(std::string_view& text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  if (!text.empty()) {
    text.remove_prefix(1);
  }
  return value;
}

}  // namespace

absl::Status MakeError(const ErrorInfo& info) {
  const ErrorReasonRow& row = RowOf(info.reason);
  return WithInfo(absl::Status(row.code, absl::string_view(row.sentence.data(), row.sentence.size())), info);
}

absl::Status MakeErrorWithDetail(ErrorReason reason, std::string_view detail) {
  return MakeErrorWithDetail(ErrorInfo{.reason = reason}, detail);
}

absl::Status MakeErrorWithDetail(const ErrorInfo& info, std::string_view detail) {
  const ErrorReasonRow& row = RowOf(info.reason);
  const std::string message = std::string(row.sentence) + " (" + std::string(detail) + ")";
  return WithInfo(absl::Status(row.code, message), info);
}

absl::Status MakeError(ErrorReason reason, std::string_view field) {
  ErrorInfo info;
  info.reason = reason;
  info.field = std::string(field);
  return MakeError(info);
}

ErrorInfo ErrorInfoOf(const absl::Status& status) {
  ErrorInfo info;
  if (status.ok()) {
    return info;
  }
  info.reason = ErrorReason::INTERNAL_FAULT;
  const auto payload = status.GetPayload(kPayloadType);
  if (!payload.has_value()) {
    return info;
  }
  const std::string encoded(*payload);
  std::string_view rest = encoded;
  info.reason = static_cast<ErrorReason>(TakeNumber(rest));
  info.limit = TakeNumber(rest);
  info.used = TakeNumber(rest);
  info.requested = TakeNumber(rest);
  info.retry_after_ms = TakeNumber(rest);
  info.field = std::string(rest);
  return info;
}

NtStatus NtStatusOf(const absl::Status& status) {
  return status.ok() ? NtStatus::kSuccess : RowOf(ErrorInfoOf(status).reason).ntstatus;
}

bool FailedWith(const absl::Status& status, ErrorReason reason) {
  return !status.ok() && ErrorInfoOf(status).reason == reason;
}

absl::Status WithField(const absl::Status& status, std::string_view field) {
  if (status.ok()) {
    return status;
  }
  ErrorInfo info = ErrorInfoOf(status);
  info.field = std::string(field);
  // The message of any other failure than MakeError's is not for clients.
  return info.reason == ErrorReason::INTERNAL_FAULT
             ? MakeError(info)
             : WithInfo(absl::Status(RowOf(info.reason).code, status.message()), info);
}

absl::Status WithFieldPrefix(const absl::Status& status, std::string_view prefix) {
  return status.ok() ? status : WithField(status, std::string(prefix) + ErrorInfoOf(status).field);
}

}  // namespace rnicd
