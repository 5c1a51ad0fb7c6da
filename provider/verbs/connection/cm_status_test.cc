#include "provider/verbs/connection/cm_status.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "base/status.h"

namespace rnicd::provider {
namespace {

TEST(CmStatus, EachErrorOfACallHasItsReason) {
  struct Row {
    int error;
    ErrorReason bind;
    ErrorReason call;
  };
  constexpr Row kRows[] = {
      {EADDRINUSE, ErrorReason::ADDRESS_IN_USE, ErrorReason::DEVICE_FAILED},
      {EADDRNOTAVAIL, ErrorReason::ADDRESS_INVALID, ErrorReason::DEVICE_FAILED},
      {ENODEV, ErrorReason::ADDRESS_INVALID, ErrorReason::DEVICE_REMOVED},
      {EINVAL, ErrorReason::DEVICE_FAILED, ErrorReason::CONNECTION_ABORTED},
      {ECONNRESET, ErrorReason::DEVICE_FAILED, ErrorReason::CONNECTION_ABORTED},
      {ENETUNREACH, ErrorReason::DEVICE_FAILED, ErrorReason::NETWORK_UNREACHABLE},
      {EHOSTUNREACH, ErrorReason::DEVICE_FAILED, ErrorReason::HOST_UNREACHABLE},
      {ECONNREFUSED, ErrorReason::DEVICE_FAILED, ErrorReason::CONNECTION_REFUSED},
      {ETIMEDOUT, ErrorReason::DEVICE_FAILED, ErrorReason::CONNECTION_TIMED_OUT},
      {ENOMEM, ErrorReason::DEVICE_OUT_OF_RESOURCES, ErrorReason::DEVICE_OUT_OF_RESOURCES},
  };
  for (const Row& row : kRows) {
    EXPECT_TRUE(FailedWith(BindStatus(row.error, "call"), row.bind)) << row.error;
    EXPECT_TRUE(FailedWith(CmStatus(row.error, "call"), row.call)) << row.error;
  }
}

TEST(CmStatus, EachEventThatEndsAnAttemptHasItsReason) {
  struct Row {
    rdma_cm_event_type type;
    int status;
    ErrorReason reason;
  };
  constexpr Row kRows[] = {
      {RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT, ErrorReason::HOST_UNREACHABLE},
      {RDMA_CM_EVENT_ADDR_ERROR, -ENODEV, ErrorReason::NETWORK_UNREACHABLE},
      {RDMA_CM_EVENT_ADDR_ERROR, -ENETUNREACH, ErrorReason::NETWORK_UNREACHABLE},
      {RDMA_CM_EVENT_ROUTE_ERROR, -ETIMEDOUT, ErrorReason::HOST_UNREACHABLE},
      {RDMA_CM_EVENT_REJECTED, 8, ErrorReason::CONNECTION_REFUSED},
      {RDMA_CM_EVENT_REJECTED, 28, ErrorReason::CONNECTION_REFUSED},
      {RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, ErrorReason::CONNECTION_TIMED_OUT},
      {RDMA_CM_EVENT_CONNECT_ERROR, -EINVAL, ErrorReason::CONNECTION_ABORTED},
      {RDMA_CM_EVENT_DISCONNECTED, 0, ErrorReason::CONNECTION_ABORTED},
      {RDMA_CM_EVENT_DEVICE_REMOVAL, 0, ErrorReason::DEVICE_REMOVED},
  };
  for (const Row& row : kRows) {
    EXPECT_TRUE(FailedWith(FailureOf({.type = row.type, .status = row.status}), row.reason)) << row.type;
  }
}

TEST(CmStatus, ARejectionOfAnAnswerThatSaysNothingMeansThatThePeerIsGone) {
  CmEvent event{.type = RDMA_CM_EVENT_REJECTED, .status = 28};
  EXPECT_TRUE(FailedWith(FailureOfAccept(event), ErrorReason::CONNECTION_ABORTED));
  event.offer.private_data = "no";
  EXPECT_TRUE(FailedWith(FailureOfAccept(event), ErrorReason::CONNECTION_REFUSED));
  event.type = RDMA_CM_EVENT_UNREACHABLE;
  EXPECT_TRUE(FailedWith(FailureOfAccept(event), ErrorReason::CONNECTION_TIMED_OUT));
}

}  // namespace
}  // namespace rnicd::provider
