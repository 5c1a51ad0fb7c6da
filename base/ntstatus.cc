#include "base/ntstatus.h"

namespace rnicd {

std::string_view NtStatusName(NtStatus status) {
  switch (status) {
    case NtStatus::kSuccess:
      return "STATUS_SUCCESS";
    case NtStatus::kPending:
      return "STATUS_PENDING";
    case NtStatus::kBufferOverflow:
      return "STATUS_BUFFER_OVERFLOW";
    case NtStatus::kDeviceBusy:
      return "STATUS_DEVICE_BUSY";
    case NtStatus::kNoMoreEntries:
      return "STATUS_NO_MORE_ENTRIES";
    case NtStatus::kAccessViolation:
      return "STATUS_ACCESS_VIOLATION";
    case NtStatus::kInvalidParameter:
      return "STATUS_INVALID_PARAMETER";
    case NtStatus::kInvalidDeviceRequest:
      return "STATUS_INVALID_DEVICE_REQUEST";
    case NtStatus::kAccessDenied:
      return "STATUS_ACCESS_DENIED";
    case NtStatus::kBufferTooSmall:
      return "STATUS_BUFFER_TOO_SMALL";
    case NtStatus::kDataOverrun:
      return "STATUS_DATA_OVERRUN";
    case NtStatus::kInsufficientResources:
      return "STATUS_INSUFFICIENT_RESOURCES";
    case NtStatus::kDeviceNotReady:
      return "STATUS_DEVICE_NOT_READY";
    case NtStatus::kIoTimeout:
      return "STATUS_IO_TIMEOUT";
    case NtStatus::kNotSupported:
      return "STATUS_NOT_SUPPORTED";
    case NtStatus::kInternalError:
      return "STATUS_INTERNAL_ERROR";
    case NtStatus::kCancelled:
      return "STATUS_CANCELLED";
    case NtStatus::kRemoteResources:
      return "STATUS_REMOTE_RESOURCES";
    case NtStatus::kInvalidDeviceState:
      return "STATUS_INVALID_DEVICE_STATE";
    case NtStatus::kNotFound:
      return "STATUS_NOT_FOUND";
    case NtStatus::kConnectionRefused:
      return "STATUS_CONNECTION_REFUSED";
    case NtStatus::kConnectionInvalid:
      return "STATUS_CONNECTION_INVALID";
    case NtStatus::kDeviceRemoved:
      return "STATUS_DEVICE_REMOVED";
    case NtStatus::kImplementationLimit:
      return "STATUS_IMPLEMENTATION_LIMIT";
    case NtStatus::kBadVersion:
      return "STATUS_BAD_VERSION";
  }
  return "STATUS_UNKNOWN";
}

}  // namespace rnicd
