#include "base/ntstatus.h"

namespace rnicd {

std::string_view NtStatusName(NtStatus status) {
  switch (status) {
    case NtStatus::kSuccess:
      return "STATUS_SUCCESS";
    case NtStatus::kPending:
      return "STATUS_PENDING";
    case NtStatus::kDeviceBusy:
      return "STATUS_DEVICE_BUSY";
    case NtStatus::kAccessViolation:
      return "STATUS_ACCESS_VIOLATION";
    case NtStatus::kInvalidParameter:
      return "STATUS_INVALID_PARAMETER";
    case NtStatus::kAccessDenied:
      return "STATUS_ACCESS_DENIED";
    case NtStatus::kInsufficientResources:
      return "STATUS_INSUFFICIENT_RESOURCES";
    case NtStatus::kDeviceNotReady:
      return "STATUS_DEVICE_NOT_READY";
    case NtStatus::kNotSupported:
      return "STATUS_NOT_SUPPORTED";
    case NtStatus::kInternalError:
      return "STATUS_INTERNAL_ERROR";
    case NtStatus::kInvalidDeviceState:
      return "STATUS_INVALID_DEVICE_STATE";
    case NtStatus::kNotFound:
      return "STATUS_NOT_FOUND";
    case NtStatus::kImplementationLimit:
      return "STATUS_IMPLEMENTATION_LIMIT";
    case NtStatus::kBadVersion:
      return "NDIS_STATUS_BAD_VERSION";
  }
  return "STATUS_UNKNOWN";
}

}  // namespace rnicd
