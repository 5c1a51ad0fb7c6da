#include "base/ntstatus.h"

#include <algorithm>
#include <iterator>

namespace rnicd {
namespace {

struct NtStatusRow {
  NtStatus status;
  std::string_view name;
};

constexpr NtStatusRow kNtStatuses[] = {
    {NtStatus::kSuccess, "STATUS_SUCCESS"},
    {NtStatus::kPending, "STATUS_PENDING"},
    {NtStatus::kBufferOverflow, "STATUS_BUFFER_OVERFLOW"},
    {NtStatus::kDeviceBusy, "STATUS_DEVICE_BUSY"},
    {NtStatus::kNoMoreEntries, "STATUS_NO_MORE_ENTRIES"},
    {NtStatus::kAccessViolation, "STATUS_ACCESS_VIOLATION"},
    {NtStatus::kInvalidParameter, "STATUS_INVALID_PARAMETER"},
    {NtStatus::kInvalidDeviceRequest, "STATUS_INVALID_DEVICE_REQUEST"},
    {NtStatus::kAccessDenied, "STATUS_ACCESS_DENIED"},
    {NtStatus::kBufferTooSmall, "STATUS_BUFFER_TOO_SMALL"},
    {NtStatus::kDataOverrun, "STATUS_DATA_OVERRUN"},
    {NtStatus::kSharingViolation, "STATUS_SHARING_VIOLATION"},
    {NtStatus::kInsufficientResources, "STATUS_INSUFFICIENT_RESOURCES"},
    {NtStatus::kDeviceNotReady, "STATUS_DEVICE_NOT_READY"},
    {NtStatus::kIoTimeout, "STATUS_IO_TIMEOUT"},
    {NtStatus::kNotSupported, "STATUS_NOT_SUPPORTED"},
    {NtStatus::kInternalError, "STATUS_INTERNAL_ERROR"},
    {NtStatus::kCancelled, "STATUS_CANCELLED"},
    {NtStatus::kRemoteResources, "STATUS_REMOTE_RESOURCES"},
    {NtStatus::kInvalidAddress, "STATUS_INVALID_ADDRESS"},
    {NtStatus::kInvalidDeviceState, "STATUS_INVALID_DEVICE_STATE"},
    {NtStatus::kInvalidBufferSize, "STATUS_INVALID_BUFFER_SIZE"},
    {NtStatus::kTooManyAddresses, "STATUS_TOO_MANY_ADDRESSES"},
    {NtStatus::kAddressAlreadyExists, "STATUS_ADDRESS_ALREADY_EXISTS"},
    {NtStatus::kNotFound, "STATUS_NOT_FOUND"},
    {NtStatus::kConnectionRefused, "STATUS_CONNECTION_REFUSED"},
    {NtStatus::kConnectionInvalid, "STATUS_CONNECTION_INVALID"},
    {NtStatus::kConnectionActive, "STATUS_CONNECTION_ACTIVE"},
    {NtStatus::kNetworkUnreachable, "STATUS_NETWORK_UNREACHABLE"},
    {NtStatus::kHostUnreachable, "STATUS_HOST_UNREACHABLE"},
    {NtStatus::kConnectionAborted, "STATUS_CONNECTION_ABORTED"},
    {NtStatus::kDeviceRemoved, "STATUS_DEVICE_REMOVED"},
    {NtStatus::kImplementationLimit, "STATUS_IMPLEMENTATION_LIMIT"},
    {NtStatus::kBadVersion, "STATUS_BAD_VERSION"},
};

}  // namespace

std::string_view NtStatusName(NtStatus status) {
  const auto* const found = std::ranges::find(kNtStatuses, status, &NtStatusRow::status);
  return found == std::end(kNtStatuses) ? "STATUS_UNKNOWN" : found->name;
}

}  // namespace rnicd
