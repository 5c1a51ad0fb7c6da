#include "client/c/result.h"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <span>
#include <string>

#include "absl/strings/cord.h"
#include "client/cpp/transport_failure.h"

namespace rnicd::c {
namespace {

constexpr char kErrnoPayload[] = "rnicd/errno";

// Plain data: no thread allocates or destroys anything for it.
thread_local constinit rnicd_error last_error = {.size = sizeof(rnicd_error)};

// Cut where it is longer.
void CopyText(std::string_view text, std::span<char> to) {
  const size_t count = std::min(text.size(), to.size() - 1);
  std::fill(std::copy_n(text.begin(), count, to.begin()), to.end(), '\0');
}

// Reasons whose errno value is not that of their code.
std::optional<int> SpecialErrnoOf(ErrorReason reason) {
  switch (reason) {
    case ErrorReason::SESSION_REQUIRED:
    case ErrorReason::SESSION_NOT_FOUND:
    case ErrorReason::SESSION_ENDING:
      return ECONNRESET;
    case ErrorReason::RATE_LIMITED:
    case ErrorReason::REQUEST_BUDGET:
    case ErrorReason::DAEMON_DRAINING:
    case ErrorReason::DAEMON_HANDED_OVER:
    case ErrorReason::QUEUE_FULL:
      return EAGAIN;
    case ErrorReason::MESSAGE_TOO_LARGE:
    case ErrorReason::MESSAGE_TOO_COMPLEX:
      return EMSGSIZE;
    case ErrorReason::REGION_BUSY:
    case ErrorReason::REGION_HAS_WINDOWS:
    case ErrorReason::MEMORY_IN_USE:
    case ErrorReason::FD_BLOCKED:
    case ErrorReason::CQ_BACKLOG:
      return EBUSY;
    case ErrorReason::MEMORY_PAGES_UNAVAILABLE:
    case ErrorReason::DEVICE_MEMLOCK_LIMIT:
      return ENOMEM;
    case ErrorReason::DEVICE_REMOVED:
      return ENODEV;
    case ErrorReason::RINGS_UNAVAILABLE:
      return EOPNOTSUPP;
    case ErrorReason::QP_NOT_CONNECTED:
      return ENOTCONN;
    case ErrorReason::PEER_LOST:
      return ECONNABORTED;
    case ErrorReason::CQ_OVERRUN:
      return EOVERFLOW;
    default:
      return std::nullopt;
  }
}

int ErrnoOf(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kInvalidArgument:
      return EINVAL;
    case absl::StatusCode::kOutOfRange:
      return ERANGE;
    case absl::StatusCode::kNotFound:
      return ENOENT;
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
      return EACCES;
    case absl::StatusCode::kResourceExhausted:
      return ENOSPC;
    case absl::StatusCode::kFailedPrecondition:
      return EBADFD;
    case absl::StatusCode::kAborted:
      return ECANCELED;
    case absl::StatusCode::kDeadlineExceeded:
      return ETIMEDOUT;
    case absl::StatusCode::kUnavailable:
      return EAGAIN;
    case absl::StatusCode::kUnimplemented:
      return EOPNOTSUPP;
    default:
      return EIO;
  }
}

// The daemon did not say why.
int ErrnoOfTransport(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kUnavailable:
      return ECONNRESET;
    case absl::StatusCode::kDeadlineExceeded:
      return ETIMEDOUT;
    case absl::StatusCode::kFailedPrecondition:
      return ESTALE;
    case absl::StatusCode::kResourceExhausted:
      return ENOMEM;
    case absl::StatusCode::kUnimplemented:
      return EOPNOTSUPP;
    default:
      return EPROTO;
  }
}

rnicd_error DescribeWantOfMemory() {
  rnicd_error error = {.size = sizeof(rnicd_error), .code = ENOMEM};
  CopyText("this process has no memory for the call", error.message);
  return error;
}

}  // namespace

int ErrnoOf(ErrorReason reason) {
  const ErrorReasonRow& row = RowOf(reason);
  if (const std::optional<int> special = SpecialErrnoOf(reason); special.has_value()) {
    return *special;
  }
  return row.name.starts_with("QUOTA_") ? EDQUOT : ErrnoOf(row.code);
}

int ErrnoOf(const absl::Status& failure) {
  if (const auto code = failure.GetPayload(kErrnoPayload); code.has_value()) {
    return std::stoi(std::string(*code));
  }
  return IsTransportFailure(failure) ? ErrnoOfTransport(failure.code()) : ErrnoOf(ErrorInfoOf(failure).reason);
}

absl::Status WithErrno(absl::Status failure, int code) {
  failure.SetPayload(kErrnoPayload, absl::Cord(std::to_string(code)));
  return failure;
}

rnicd_error Describe(const absl::Status& failure) noexcept {
  try {
    const ErrorInfo info = ErrorInfoOf(failure);
    rnicd_error error = {.size = sizeof(rnicd_error),
                         .code = ErrnoOf(failure),
                         .reason = IsTransportFailure(failure) ? 0 : static_cast<uint32_t>(info.reason),
                         .ntstatus = static_cast<uint32_t>(NtStatusOf(failure)),
                         .limit = info.limit,
                         .used = info.used,
                         .requested = info.requested,
                         .retry_after_ms = info.retry_after_ms};
    CopyText(info.field, error.field);
    CopyText(std::string_view(failure.message().data(), failure.message().size()), error.message);
    return error;
  } catch (const std::exception&) {
    return DescribeWantOfMemory();
  }
}

int Fail(const absl::Status& failure) noexcept {
  last_error = Describe(failure);
  return -last_error.code;
}

int FailForMemory() noexcept {
  last_error = DescribeWantOfMemory();
  return -last_error.code;
}

}  // namespace rnicd::c

const rnicd_error* rnicd_last_error() { return &rnicd::c::last_error; }

const char* rnicd_reason_name(uint32_t reason) {
  if (reason == 0) {
    return "UNSPECIFIED";
  }
  const auto all = rnicd::AllErrorReasons();
  const auto row = std::find_if(all.begin(), all.end(), [reason](const rnicd::ErrorReasonRow& one) {
    return static_cast<uint32_t>(one.reason) == reason;
  });
  return row == all.end() ? "UNKNOWN" : row->name.data();
}

// Both lists have literals, which end with a zero.
const char* rnicd_ntstatus_name(uint32_t ntstatus) {
  return rnicd::NtStatusName(static_cast<rnicd::NtStatus>(ntstatus)).data();
}
