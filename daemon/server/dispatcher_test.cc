#include "daemon/server/dispatcher.h"

#include <optional>
#include <utility>
#include <vector>

#include "base/error_reason.h"
#include "base/status.h"
#include "daemon/core/session/core_fixture_test.h"
#include "daemon/rpc/socket/event_loop.h"
#include "rnicd/v1/error.pb.h"

namespace rnicd::server {
namespace {

// Keeps how the last call ended.
class LastCall final : public core::Observer {
 public:
  void Observe(const core::Observation& observation) override {
    if (const auto* const rpc = observation.As<core::RpcEnded>(); rpc != nullptr) {
      method_ = rpc->method;
      code_ = rpc->code;
    } else if (const auto* const decision = observation.As<core::Decision>(); decision != nullptr) {
      refusal_ = ErrorInfoOf(decision->status);
    }
  }

  const std::string& method() const { return method_; }
  absl::StatusCode code() const { return code_; }
  const ErrorInfo& refusal() const { return refusal_; }

 private:
  std::string method_;
  absl::StatusCode code_ = absl::StatusCode::kOk;
  ErrorInfo refusal_;
};

class DispatcherTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kMessageBytesMax = 12345;

  // Refuses a call of a client that has gone, which is reported to the observer only.
  void Refuse(rpc::Refusal::Reason reason, uint64_t bytes = 0) {
    const Dispatcher dispatcher(methods_, gate::Gate({observer_, logger_, world_.clock}, Connect()), kMessageBytesMax);
    const auto call = std::make_shared<rpc::ServerCall>(loop_, std::weak_ptr<rpc::Connection>(), 1, "/no/Method", "",
                                                        rpc::BudgetCharge(), rpc::Refusal{reason, bytes});
    dispatcher.Dispatch(call);
  }
  std::shared_ptr<gate::ConnectionContext> Connect() {
    return std::make_shared<gate::ConnectionContext>(core::CallerNumbered(1), world_.node, world_.registry);
  }

  core::World world_;
  LastCall observer_;
  const log::Logger logger_{{.level = log::Level::kError}};
  const gate::MethodIndex methods_{{}};
  const std::shared_ptr<rpc::EventLoop> loop_ = *rpc::EventLoop::Start(world_.clock);
};

// What the wire refuses is a call like any other to metrics, log and audit log.
TEST_F(DispatcherTest, EveryRefusalOfTheWireIsReportedWithItsReason) {
  const std::vector<std::pair<rpc::Refusal::Reason, ErrorReason>> rows = {
      {rpc::Refusal::kMessageTooLarge, ErrorReason::MESSAGE_TOO_LARGE},
      {rpc::Refusal::kOverBudget, ErrorReason::REQUEST_BUDGET},
      {rpc::Refusal::kCompressed, ErrorReason::MESSAGE_COMPRESSED},
      {rpc::Refusal::kMessageCount, ErrorReason::MESSAGE_MALFORMED},
      {rpc::Refusal::kIncomplete, ErrorReason::REQUEST_TIMEOUT},
      {rpc::Refusal::kSecretMissing, ErrorReason::SECRET_REQUIRED},
      {rpc::Refusal::kTimeoutMalformed, ErrorReason::FIELD_OUT_OF_RANGE},
  };
  for (const auto& [refusal, reason] : rows) {
    Refuse(refusal);
    EXPECT_EQ(observer_.method(), "unknown");
    EXPECT_EQ(observer_.code(), RowOf(reason).code) << RowOf(reason).name;
    EXPECT_EQ(observer_.refusal().reason, reason) << RowOf(reason).name;
  }
  EXPECT_EQ(observer_.refusal().field, "grpc-timeout");
}

TEST_F(DispatcherTest, AMessageThatIsTooLargeIsRefusedWithTheLimitThatHolds) {
  Refuse(rpc::Refusal::kMessageTooLarge, kMessageBytesMax + 1);
  EXPECT_EQ(observer_.refusal().limit, kMessageBytesMax);
  EXPECT_EQ(observer_.refusal().requested, kMessageBytesMax + 1);
}

TEST_F(DispatcherTest, CallsThatTheWireRefusesCountAgainstTheRate) {
  core::Policy policy;
  core::TenantRule rule{.name = "rated", .limits = {.tenant_rate = {.per_second = 1, .burst = 1}}};
  rule.matches.push_back(core::Matcher{.uid = core::CallerNumbered(1).uid});
  policy.tenants.push_back(rule);
  world_.tenants.SetPolicy(policy);
  Refuse(rpc::Refusal::kCompressed);
  std::chrono::nanoseconds wait{0};
  EXPECT_TRUE(FailedWith(Connect()->CountCall(nullptr, &wait), ErrorReason::RATE_LIMITED));
}

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
