#include "client/cpp/channel/channel.h"

#include "base/status.h"
#include "client/cpp/transport_failure.h"
#include "gtest/gtest.h"
#include "rnicd/v1/error.pb.h"

namespace rnicd::inline client {
namespace {

http2::Status FailureWith(const v1::ErrorDetail& detail, absl::StatusCode code) {
  v1::RpcStatus rpc_status;
  rpc_status.set_code(static_cast<int>(code));
  rpc_status.add_details()->PackFrom(detail);
  return {.code = static_cast<int>(code), .message = "text for people", .details = rpc_status.SerializeAsString()};
}

TEST(WireError, EveryReasonArrivesAsTheDaemonMadeIt) {
  for (const ErrorReasonRow& row : AllErrorReasons()) {
    v1::ErrorDetail detail;
    detail.set_reason(static_cast<v1::ErrorReason>(row.reason));
    const absl::Status status = StatusFrom(FailureWith(detail, static_cast<absl::StatusCode>(row.code)));
    EXPECT_EQ(status, MakeError(row.reason)) << row.name;
    EXPECT_EQ(NtStatusOf(status), row.ntstatus) << row.name;
    EXPECT_FALSE(IsTransportFailure(status)) << row.name;
  }
}

TEST(WireError, FieldAndQuotaFiguresArrive) {
  v1::ErrorDetail detail;
  detail.set_reason(v1::ERROR_REASON_QUOTA_PINNED_BYTES);
  detail.set_field("mdl_chain[3].byte_count");
  detail.set_limit(100);
  detail.set_used(90);
  detail.set_requested(11);
  const ErrorInfo info = ErrorInfoOf(StatusFrom(FailureWith(detail, absl::StatusCode::kResourceExhausted)));
  EXPECT_EQ(info.reason, ErrorReason::QUOTA_PINNED_BYTES);
  EXPECT_EQ(info.field, "mdl_chain[3].byte_count");
  EXPECT_EQ(info.limit, 100u);
  EXPECT_EQ(info.used, 90u);
  EXPECT_EQ(info.requested, 11u);
}

TEST(WireError, WhatTheDaemonAddsToTheReasonArrives) {
  v1::ErrorDetail detail;
  detail.set_reason(v1::ERROR_REASON_MEMORY_NOT_PINNABLE);
  detail.set_message("the device cannot pin this (mmap: ENOMEM)");
  const absl::Status status = StatusFrom(FailureWith(detail, absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(status.message(), "the device cannot pin this (mmap: ENOMEM)");
  EXPECT_EQ(ErrorInfoOf(status).reason, ErrorReason::MEMORY_NOT_PINNABLE);
}

TEST(WireError, ReasonOfANewerDaemonKeepsItsNumberCodeAndText) {
  v1::ErrorDetail detail;
  detail.set_reason(static_cast<v1::ErrorReason>(9999));
  detail.set_message("a reason of tomorrow");
  const absl::Status status = StatusFrom(FailureWith(detail, absl::StatusCode::kAborted));
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(status.message(), "a reason of tomorrow");
  EXPECT_EQ(static_cast<uint32_t>(ErrorInfoOf(status).reason), 9999u);
}

TEST(WireError, FailureWithoutDetailKeepsItsCodeAndSaysSo) {
  for (const std::string& details : {std::string(), std::string("\xff garbage"), v1::RpcStatus().SerializeAsString()}) {
    const http2::Status failure = {
        .code = static_cast<int>(absl::StatusCode::kUnavailable), .message = "connection refused", .details = details};
    const absl::Status status = StatusFrom(failure);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_EQ(status.message(), "no answer from rnicd: connection refused");
    EXPECT_TRUE(IsTransportFailure(status));
    EXPECT_EQ(ErrorInfoOf(status).reason, ErrorReason::INTERNAL_FAULT);
  }
}

TEST(WireError, SuccessIsOk) { EXPECT_TRUE(StatusFrom({}).ok()); }

}  // namespace
}  // namespace rnicd::inline client
