#include "provider/verbs/connection/cm_status.h"

#include <cerrno>

#include "base/status.h"
#include "provider/verbs/card/verbs_status.h"

namespace rnicd::provider {

absl::Status BindStatus(int error, std::string_view call) {
  switch (error) {
    case EADDRINUSE:
      return MakeError(ErrorReason::ADDRESS_IN_USE, "address");
    case EADDRNOTAVAIL:
    case ENODEV:
      return MakeError(ErrorReason::ADDRESS_INVALID, "address");
    default:
      return VerbStatus(error, call);
  }
}

absl::Status CmStatus(int error, std::string_view call) {
  switch (error) {
    case EINVAL:
    case ECONNRESET:
      return MakeError(ErrorReason::CONNECTION_ABORTED);
    case ENETUNREACH:
      return MakeError(ErrorReason::NETWORK_UNREACHABLE);
    case EHOSTUNREACH:
      return MakeError(ErrorReason::HOST_UNREACHABLE);
    case ECONNREFUSED:
      return MakeError(ErrorReason::CONNECTION_REFUSED);
    case ETIMEDOUT:
      return MakeError(ErrorReason::CONNECTION_TIMED_OUT);
    default:
      return VerbStatus(error, call);
  }
}

// A status is a negative errno, but for a rejection, whose reason a peer may choose.
absl::Status FailureOf(const CmEvent& event) {
  switch (event.type) {
    case RDMA_CM_EVENT_ADDR_ERROR:
    case RDMA_CM_EVENT_ROUTE_ERROR:
      return MakeError(event.status == -ENODEV || event.status == -ENETUNREACH ? ErrorReason::NETWORK_UNREACHABLE
                                                                               : ErrorReason::HOST_UNREACHABLE);
    case RDMA_CM_EVENT_REJECTED:
      return MakeError(ErrorReason::CONNECTION_REFUSED);
    // So ends a TCP connection without an answer.
    case RDMA_CM_EVENT_CONNECT_ERROR:
      return MakeError(event.status == -ECONNABORTED ? ErrorReason::CONNECTION_REFUSED
                                                     : ErrorReason::CONNECTION_ABORTED);
    case RDMA_CM_EVENT_UNREACHABLE:
      return MakeError(ErrorReason::CONNECTION_TIMED_OUT);
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
      return MakeError(ErrorReason::DEVICE_REMOVED);
    default:
      return MakeError(ErrorReason::CONNECTION_ABORTED);
  }
}

absl::Status FailureOfAccept(const CmEvent& event) {
  return event.type == RDMA_CM_EVENT_REJECTED && event.offer.private_data.empty()
             ? MakeError(ErrorReason::CONNECTION_ABORTED)
             : FailureOf(event);
}

}  // namespace rnicd::provider
