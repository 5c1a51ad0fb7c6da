#pragma once

#include <cstdint>
#include <source_location>
#include <string_view>

#include "base/error_reason.h"
#include "base/ntstatus.h"
#include "rnicd/v1/error.pb.h"
#include "tests/support/calls/call_result.h"
#include "tests/support/calls/fd_exchange.h"

// Each function reports a test failure at the caller's line if the expectation does not hold, and returns whether it
// held.
namespace rnicd::test {

inline constexpr uint32_t kStatusSuccess = static_cast<uint32_t>(NtStatus::kSuccess);
inline constexpr uint32_t kStatusPending = static_cast<uint32_t>(NtStatus::kPending);

using Where = std::source_location;

bool ExpectOk(const CallOutcome& outcome, Where where = Where::current());

// The refusal carries exactly this reason and field, and the gRPC code and NTSTATUS that belong to the reason.
bool ExpectRefused(const CallOutcome& outcome, ErrorReason reason, std::string_view field = {},
                   Where where = Where::current());
// The same for a batch item, an event or a reply on the fd socket, which have no gRPC code.
bool ExpectRefused(const v1::ErrorDetail& detail, ErrorReason reason, std::string_view field = {},
                   Where where = Where::current());

bool ExpectFdOk(const FdAnswer& answer, Where where = Where::current());
bool ExpectFdRefused(const FdAnswer& answer, ErrorReason reason, Where where = Where::current());

}  // namespace rnicd::test
