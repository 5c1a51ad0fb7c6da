#include "daemon/server/wire_status.h"

#include <gtest/gtest.h>

#include "base/status.h"
#include "rnicd/v1/error.pb.h"

namespace rnicd::server {
namespace {

TEST(WireStatus, EveryReasonTravelsWithItsCodeAndDetail) {
  for (const ErrorReasonRow& row : AllErrorReasons()) {
    const rpc::Status status = ToWireStatus(MakeError(row.reason, "items[1].length"));
    EXPECT_EQ(status.code, static_cast<int>(row.code)) << row.name;
    EXPECT_EQ(status.message, row.sentence);
    v1::RpcStatus envelope;
    ASSERT_TRUE(envelope.ParseFromString(status.details)) << row.name;
    EXPECT_EQ(envelope.code(), static_cast<int>(row.code));
    ASSERT_EQ(envelope.details_size(), 1);
    EXPECT_EQ(envelope.details(0).type_url(), "type.googleapis.com/rnicd.v1.ErrorDetail");
    v1::ErrorDetail detail;
    ASSERT_TRUE(envelope.details(0).UnpackTo(&detail));
    EXPECT_EQ(static_cast<uint32_t>(detail.reason()), static_cast<uint32_t>(row.reason));
    EXPECT_EQ(detail.field(), "items[1].length");
  }
}

TEST(WireStatus, OkIsOk) { EXPECT_EQ(ToWireStatus(absl::OkStatus()).code, 0); }

TEST(WireStatus, ACancelledCallSaysOnlyThat) {
  const rpc::Status status = ToWireStatus(absl::CancelledError());
  EXPECT_EQ(status.code, static_cast<int>(absl::StatusCode::kCancelled));
  EXPECT_TRUE(status.details.empty());
}

TEST(WireStatus, AStrangersFailureIsInternalAndKeepsItsTextHere) {
  const rpc::Status status = ToWireStatus(absl::NotFoundError("a path of the daemon's"));
  EXPECT_EQ(status.code, static_cast<int>(absl::StatusCode::kInternal));
  EXPECT_EQ(status.message.find("path"), std::string::npos);
}

}  // namespace
}  // namespace rnicd::server
