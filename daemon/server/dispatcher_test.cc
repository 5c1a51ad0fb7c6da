#include "daemon/server/dispatcher.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error_reason.h"
#include "daemon/core/observer.h"
#include "rnicd/v1/error.pb.h"

namespace rnicd::server {
namespace {

v1::ErrorDetail DetailOf(const rpc::Status& status) {
  v1::RpcStatus envelope;
  v1::ErrorDetail detail;
  EXPECT_TRUE(envelope.ParseFromString(status.details));
  EXPECT_TRUE(envelope.details_size() == 1 && envelope.details(0).UnpackTo(&detail));
  return detail;
}

// What the wire refuses before any handler runs is refused in the words of every other error.
TEST(Dispatcher, EveryRefusalOfTheWireHasItsReason) {
  core::Observer observer;
  const log::Logger logger{{.level = log::Level::kError}};
  const SteadyClock clock;
  gate::DelayedResponses delayed_responses;
  const gate::MethodIndex methods({});
  Dispatcher dispatcher(
      methods,
      gate::Gate({.observer = observer, .logger = logger, .clock = clock, .delayed_responses = delayed_responses},
                 nullptr));
  constexpr uint64_t kBytes = 5 << 20;
  const std::vector<std::pair<rpc::Refusal, ErrorReason>> rows = {
      {rpc::Refusal::kMessageTooLarge, ErrorReason::MESSAGE_TOO_LARGE},
      {rpc::Refusal::kOverBudget, ErrorReason::REQUEST_BUDGET},
      {rpc::Refusal::kCompressed, ErrorReason::MESSAGE_COMPRESSED},
      {rpc::Refusal::kMessageCount, ErrorReason::MESSAGE_MALFORMED},
      {rpc::Refusal::kIncomplete, ErrorReason::REQUEST_TIMEOUT},
      {rpc::Refusal::kTimeoutMalformed, ErrorReason::FIELD_OUT_OF_RANGE},
  };
  for (const auto& [refusal, reason] : rows) {
    const rpc::Status status = dispatcher.StatusOf(refusal, kBytes);
    EXPECT_EQ(status.code, static_cast<int>(RowOf(reason).code)) << RowOf(reason).name;
    EXPECT_EQ(static_cast<uint32_t>(DetailOf(status).reason()), static_cast<uint32_t>(reason));
  }
  EXPECT_EQ(DetailOf(dispatcher.StatusOf(rpc::Refusal::kMessageTooLarge, kBytes)).requested(), kBytes);
  EXPECT_EQ(DetailOf(dispatcher.StatusOf(rpc::Refusal::kTimeoutMalformed, 0)).field(), "grpc-timeout");
}

}  // namespace
}  // namespace rnicd::server
