#include "daemon/gate/wire_status.h"

#include <gtest/gtest.h>

#include "base/status.h"
#include "rnicd/v1/error.pb.h"

namespace rnicd::gate {
namespace {

TEST(WireStatus, EveryReasonTravelsWithItsCodeAndDetail) {
  for (const ErrorReasonRow& row : AllErrorReasons()) {
    const grpc::Status status = ToGrpcStatus(MakeError(row.reason, "items[1].length"));
    EXPECT_EQ(static_cast<int>(status.error_code()), static_cast<int>(row.code)) << row.name;
    EXPECT_EQ(status.error_message(), row.sentence);
    v1::RpcStatus envelope;
    ASSERT_TRUE(envelope.ParseFromString(status.error_details())) << row.name;
    EXPECT_EQ(envelope.code(), static_cast<int>(row.code));
    ASSERT_EQ(envelope.details_size(), 1);
    EXPECT_EQ(envelope.details(0).type_url(), "type.googleapis.com/rnicd.v1.ErrorDetail");
    v1::ErrorDetail detail;
    ASSERT_TRUE(envelope.details(0).UnpackTo(&detail));
    EXPECT_EQ(static_cast<uint32_t>(detail.reason()), static_cast<uint32_t>(row.reason));
    EXPECT_EQ(detail.field(), "items[1].length");
  }
}

TEST(WireStatus, OkIsOk) { EXPECT_TRUE(ToGrpcStatus(absl::OkStatus()).ok()); }

TEST(WireStatus, ACancelledCallSaysOnlyThat) {
  const grpc::Status status = ToGrpcStatus(absl::CancelledError());
  EXPECT_EQ(status.error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(status.error_details().empty());
}

TEST(WireStatus, AStrangersFailureIsInternalAndKeepsItsTextHere) {
  const grpc::Status status = ToGrpcStatus(absl::NotFoundError("a path of the daemon's"));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INTERNAL);
  EXPECT_EQ(status.error_message().find("path"), std::string::npos);
}

}  // namespace
}  // namespace rnicd::gate
