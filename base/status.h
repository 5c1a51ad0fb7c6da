#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/error_reason.h"

namespace rnicd {

// Details of a failure besides its code: the reason, the field at fault, and the figures of an exceeded limit.
struct ErrorInfo {
  ErrorReason reason = ErrorReason::UNSPECIFIED;
  // The request field, for example "mdl_chain[3].byte_count"; empty when no single field is at fault.
  std::string field;
  // Figures of the limit, as error.proto defines them for the reason; otherwise 0.
  uint64_t limit = 0;
  uint64_t used = 0;
  uint64_t requested = 0;
  // Milliseconds after which the same may succeed; 0 where that is not known.
  uint64_t retry_after_ms = 0;
};

// The only way to create a failure. Code and message come from the reason's row.
absl::Status MakeError(const ErrorInfo& info);
absl::Status MakeError(ErrorReason reason, std::string_view field = {});
// A failure with `detail` for people after the reason's sentence: "... (mmap: ENOMEM)".
absl::Status MakeErrorWithDetail(ErrorReason reason, std::string_view detail);
absl::Status MakeErrorWithDetail(const ErrorInfo& info, std::string_view detail);

// The info of a failure made by MakeError; of any other failure, an info with INTERNAL_FAULT.
ErrorInfo ErrorInfoOf(const absl::Status& status);

// kSuccess for ok; otherwise the NTSTATUS of the failure's reason.
NtStatus NtStatusOf(const absl::Status& status);

// True when the status failed for this reason.
bool FailedWith(const absl::Status& status, ErrorReason reason);

// The same failure, with its message, of another field.
absl::Status WithField(const absl::Status& status, std::string_view field);
// The same failure with `prefix` before its field: "items[2]." turns "length" into "items[2].length".
absl::Status WithFieldPrefix(const absl::Status& status, std::string_view prefix);

}  // namespace rnicd

#define RNICD_CONCAT_INNER(a, b) a##b
#define RNICD_CONCAT(a, b) RNICD_CONCAT_INNER(a, b)

// Returns from the enclosing function when the status is not ok.
#define RNICD_RETURN_IF_ERROR(expression)                                 \
  do {                                                                    \
    if (absl::Status rnicd_status_ = (expression); !rnicd_status_.ok()) { \
      return rnicd_status_;                                               \
    }                                                                     \
  } while (false)

// Assigns the value, or returns from the enclosing function when there is none.
#define RNICD_ASSIGN_OR_RETURN(target, expression) \
  RNICD_ASSIGN_OR_RETURN_INNER(RNICD_CONCAT(rnicd_statusor_, __LINE__), target, expression)
#define RNICD_ASSIGN_OR_RETURN_INNER(holder, target, expression) \
  auto holder = (expression);                                    \
  if (!holder.ok()) {                                            \
    return holder.status();                                      \
  }                                                              \
  target = *std::move(holder)
