#pragma once

#include <cstdint>
#include <string_view>

namespace rnicd {

// The NTSTATUS values that NDK names for memory regions. Success is bit 31 clear, so kPending passes for success:
// test for it first. Source: ntstatus.h.
enum class NtStatus : uint32_t {
  kSuccess = 0x00000000,
  kPending = 0x00000103,
  kDeviceBusy = 0x80000011,
  kAccessViolation = 0xC0000005,
  kInvalidParameter = 0xC000000D,
  kAccessDenied = 0xC0000022,
  kInsufficientResources = 0xC000009A,
  kDeviceNotReady = 0xC00000A3,
  kNotSupported = 0xC00000BB,
  kInternalError = 0xC00000E5,
  kInvalidDeviceState = 0xC0000184,
  kNotFound = 0xC0000225,
  kImplementationLimit = 0xC000042B,
  kBadVersion = 0xC0010004,
};

// "STATUS_INVALID_PARAMETER"; "STATUS_UNKNOWN" for a value that is not in the list.
std::string_view NtStatusName(NtStatus status);

}  // namespace rnicd
