#pragma once

#include <cstdint>
#include <string_view>

namespace rnicd {

// The NTSTATUS values that rnicd returns. Success is bit 31 clear, so kPending counts as success: test for it first.
// Source: ntstatus.h.
enum class NtStatus : uint32_t {
  kSuccess = 0x00000000,
  kPending = 0x00000103,
  kBufferOverflow = 0x80000005,
  kDeviceBusy = 0x80000011,
  kNoMoreEntries = 0x8000001A,
  kAccessViolation = 0xC0000005,
  kInvalidParameter = 0xC000000D,
  kInvalidDeviceRequest = 0xC0000010,
  kAccessDenied = 0xC0000022,
  kBufferTooSmall = 0xC0000023,
  kDataOverrun = 0xC000003C,
  kSharingViolation = 0xC0000043,
  kInsufficientResources = 0xC000009A,
  kDeviceNotReady = 0xC00000A3,
  kIoTimeout = 0xC00000B5,
  kNotSupported = 0xC00000BB,
  kInternalError = 0xC00000E5,
  kCancelled = 0xC0000120,
  kRemoteResources = 0xC000013D,
  kInvalidAddress = 0xC0000141,
  kInvalidDeviceState = 0xC0000184,
  kInvalidBufferSize = 0xC0000206,
  kTooManyAddresses = 0xC0000209,
  kAddressAlreadyExists = 0xC000020A,
  kNotFound = 0xC0000225,
  kConnectionRefused = 0xC0000236,
  kConnectionInvalid = 0xC000023A,
  kConnectionActive = 0xC000023B,
  kNetworkUnreachable = 0xC000023C,
  kHostUnreachable = 0xC000023D,
  kConnectionAborted = 0xC0000241,
  kDeviceRemoved = 0xC00002B6,
  kImplementationLimit = 0xC000042B,
  kBadVersion = 0xC0010004,
};

// "STATUS_INVALID_PARAMETER"; "STATUS_UNKNOWN" for a value that is not in the list.
std::string_view NtStatusName(NtStatus status);

}  // namespace rnicd
