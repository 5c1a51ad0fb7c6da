#include "provider/networkdirect/card/nd_status.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "base/status.h"

namespace rnicd::provider {
namespace {

struct Name {
  HRESULT result;
  std::string_view name;
};

constexpr Name kNames[] = {
    {kNdSuccess, "ND_SUCCESS"},
    {kNdTimeout, "ND_TIMEOUT"},
    {kNdPending, "ND_PENDING"},
    {kNdBufferOverflow, "ND_BUFFER_OVERFLOW"},
    {kNdDeviceBusy, "ND_DEVICE_BUSY"},
    {kNdNoMoreEntries, "ND_NO_MORE_ENTRIES"},
    {kNdUnsuccessful, "ND_UNSUCCESSFUL"},
    {kNdAccessViolation, "ND_ACCESS_VIOLATION"},
    {kNdInvalidHandle, "ND_INVALID_HANDLE"},
    {kNdInvalidParameter, "ND_INVALID_PARAMETER"},
    {kNdInvalidDeviceRequest, "ND_INVALID_DEVICE_REQUEST"},
    {kNdNoMemory, "ND_NO_MEMORY"},
    {kNdInvalidParameterMix, "ND_INVALID_PARAMETER_MIX"},
    {kNdDataOverrun, "ND_DATA_OVERRUN"},
    {kNdSharingViolation, "ND_SHARING_VIOLATION"},
    {kNdInsufficientResources, "ND_INSUFFICIENT_RESOURCES"},
    {kNdDeviceNotReady, "ND_DEVICE_NOT_READY"},
    {kNdIoTimeout, "ND_IO_TIMEOUT"},
    {kNdNotSupported, "ND_NOT_SUPPORTED"},
    {kNdInternalError, "ND_INTERNAL_ERROR"},
    {kNdCanceled, "ND_CANCELED"},
    {kNdRemoteError, "ND_REMOTE_ERROR"},
    {kNdInvalidAddress, "ND_INVALID_ADDRESS"},
    {kNdInvalidDeviceState, "ND_INVALID_DEVICE_STATE"},
    {kNdInvalidBufferSize, "ND_INVALID_BUFFER_SIZE"},
    {kNdTooManyAddresses, "ND_TOO_MANY_ADDRESSES"},
    {kNdAddressAlreadyExists, "ND_ADDRESS_ALREADY_EXISTS"},
    {kNdConnectionRefused, "ND_CONNECTION_REFUSED"},
    {kNdConnectionInvalid, "ND_CONNECTION_INVALID"},
    {kNdConnectionActive, "ND_CONNECTION_ACTIVE"},
    {kNdNetworkUnreachable, "ND_NETWORK_UNREACHABLE"},
    {kNdHostUnreachable, "ND_HOST_UNREACHABLE"},
    {kNdConnectionAborted, "ND_CONNECTION_ABORTED"},
    {kNdDeviceRemoved, "ND_DEVICE_REMOVED"},
};

ErrorReason ReasonOf(HRESULT result) {
  switch (result) {
    case kNdDeviceRemoved:
      return ErrorReason::DEVICE_REMOVED;
    case kNdInsufficientResources:
    case kNdNoMemory:
    case kNdNoMoreEntries:
    case kNdTooManyAddresses:
      return ErrorReason::DEVICE_OUT_OF_RESOURCES;
    case kNdNotSupported:
      return ErrorReason::DEVICE_NOT_CAPABLE;
    default:
      return ErrorReason::DEVICE_FAILED;
  }
}

absl::Status StatusFor(ErrorReason reason, HRESULT result, std::string_view call) {
  return MakeErrorWithDetail(reason, std::string(call) + ": " + NdResultName(result));
}

}  // namespace

std::string NdResultName(HRESULT result) {
  const auto* const found = std::ranges::find(kNames, result, &Name::result);
  if (found != std::end(kNames)) {
    return std::string(found->name);
  }
  std::array<char, 11> text;
  std::snprintf(text.data(), text.size(), "0x%08X", static_cast<unsigned>(result));
  return text.data();
}

absl::Status NdStatus(HRESULT result, std::string_view call) { return StatusFor(ReasonOf(result), result, call); }

absl::Status NdRegistrationStatus(HRESULT result, std::string_view call) {
  switch (result) {
    case kNdAccessViolation:
      return StatusFor(ErrorReason::MEMORY_NOT_PINNABLE, result, call);
    case kNdDeviceBusy:
      return StatusFor(ErrorReason::REGION_HAS_WINDOWS, result, call);
    default:
      return NdStatus(result, call);
  }
}

CardOutcome OutcomeOf(HRESULT result, ND2_REQUEST_TYPE type) {
  const bool receive = type == Nd2RequestTypeReceive;
  const bool reaches_peer_memory = type == Nd2RequestTypeRead || type == Nd2RequestTypeWrite;
  switch (result) {
    case kNdSuccess:
      return {};
    case kNdCanceled:
      return {.status = NtStatus::kCancelled};
    case kNdTimeout:
    case kNdIoTimeout:
    case kNdConnectionInvalid:
    case kNdConnectionAborted:
    case kNdNetworkUnreachable:
    case kNdHostUnreachable:
      return {.status = NtStatus::kIoTimeout, .peer_lost = true};
    case kNdDeviceRemoved:
      return {.status = NtStatus::kCancelled, .peer_lost = true};
    case kNdAccessViolation:
      return {.status = NtStatus::kAccessViolation, .at_peer = reaches_peer_memory};
    case kNdRemoteError:
      return {.status = reaches_peer_memory ? NtStatus::kAccessViolation : NtStatus::kRemoteResources,
              .at_peer = !receive};
    case kNdBufferOverflow:
    case kNdDataOverrun:
    case kNdInvalidBufferSize:
      return {.status = receive ? NtStatus::kBufferOverflow : NtStatus::kDataOverrun};
    case kNdInvalidDeviceRequest:
      return {.status = NtStatus::kInvalidDeviceRequest};
    default:
      return {.status = NtStatus::kInternalError};
  }
}

}  // namespace rnicd::provider
