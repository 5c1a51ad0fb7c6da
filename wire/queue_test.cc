#include "wire/queue.h"

#include <gtest/gtest.h>

#include "base/status.h"

namespace rnicd::wire {
namespace {

constexpr Completion kFailed{.status = NtStatus::kAccessViolation,
                             .reason = ErrorReason::REMOTE_ACCESS_REFUSED,
                             .type = OperationType::kReceiveAndInvalidate,
                             .bytes = 12,
                             .qp_context = 1ull << 40,
                             .request_context = 1ull << 50,
                             .invalidated_token = {0xab02}};

TEST(QueueWire, CompletionsArriveWithEveryField) {
  const v1::CqResultEx wire = ToWireEx(kFailed);
  EXPECT_EQ(wire.result().ntstatus(), 0xC0000005u);
  EXPECT_EQ(wire.provider_error_code(), 0u);
  const Completion completion = FromWire(wire);
  EXPECT_EQ(completion.status, kFailed.status);
  EXPECT_FALSE(completion.ok());
  EXPECT_EQ(completion.reason, kFailed.reason);
  EXPECT_EQ(completion.type, kFailed.type);
  EXPECT_EQ(completion.bytes, kFailed.bytes);
  EXPECT_EQ(completion.qp_context, kFailed.qp_context);
  EXPECT_EQ(completion.request_context, kFailed.request_context);
  EXPECT_EQ(completion.invalidated_token, kFailed.invalidated_token);
  EXPECT_TRUE(FromWire(v1::CqResultEx()).ok());
}

TEST(QueueWire, TheShortFormOfACompletionHasAllButTypeAndToken) {
  const v1::CqResult wire = ToWire(kFailed);
  EXPECT_EQ(wire.SerializeAsString(), ToWireEx(kFailed).result().SerializeAsString());
  EXPECT_EQ(ToWire(FromWire(wire)).SerializeAsString(), wire.SerializeAsString());
  EXPECT_EQ(FromWire(wire).invalidated_token, RemoteToken{});
}

TEST(QueueWire, OutcomesKeepTheFailureAndEachToken) {
  const PostOutcome outcome =
      FromWire(ToWire(PostOutcome{.posted = 3,
                                  .failure = MakeError(ErrorReason::FLAGS_UNKNOWN, "requests[3].flags"),
                                  .issued_tokens = {{.request_index = 0, .remote_token = {0x100}},
                                                    {.request_index = 2, .remote_token = {0x102}}}}));
  EXPECT_EQ(outcome.posted, 3u);
  EXPECT_TRUE(FailedWith(outcome.failure, ErrorReason::FLAGS_UNKNOWN));
  EXPECT_EQ(ErrorInfoOf(outcome.failure).field, "requests[3].flags");
  ASSERT_EQ(outcome.issued_tokens.size(), 2u);
  EXPECT_EQ(outcome.TokenOf(0).value, 0x100u);
  EXPECT_EQ(outcome.TokenOf(1).value, 0u);
  EXPECT_EQ(outcome.TokenOf(2).value, 0x102u);
  EXPECT_FALSE(ToWire(PostOutcome{.posted = 1}).has_failure());
  EXPECT_TRUE(FromWire(v1::PostResponse()).failure.ok());
}

TEST(QueueWire, StatesArriveAndAnUnknownOneIsAnError) {
  for (const QueuePairState state : {QueuePairState::kInit, QueuePairState::kReadyToSend, QueuePairState::kError}) {
    EXPECT_EQ(FromWire(ToWire(state)), state);
    EXPECT_EQ(static_cast<int>(ToWire(state)), static_cast<int>(state)) << "the numbers are those of the wire";
  }
  EXPECT_EQ(FromWire(static_cast<v1::QpState>(99)), QueuePairState::kError);
}

TEST(QueueWire, NotifyTypesArriveAndAnUnknownOneIsRefused) {
  for (const CqNotifyType type : {CqNotifyType::kErrors, CqNotifyType::kAny, CqNotifyType::kSolicited}) {
    const absl::StatusOr<CqNotifyType> arrived = FromWire(ToWire(type));
    ASSERT_TRUE(arrived.ok()) << arrived.status();
    EXPECT_EQ(*arrived, type);
  }
  const absl::Status refused = FromWire(static_cast<v1::CqNotifyType>(3)).status();
  EXPECT_TRUE(FailedWith(refused, ErrorReason::FIELD_OUT_OF_RANGE));
  EXPECT_EQ(ErrorInfoOf(refused).field, "type");
}

TEST(QueueWire, LimitsOfAQueuePairArrive) {
  v1::CreateQpRequest request;
  SetLimits({.receive_depth = 1, .initiator_depth = 2, .receive_entries = 3, .initiator_entries = 4, .inline_bytes = 5},
            &request);
  EXPECT_EQ(request.receive_queue_depth(), 1u);
  EXPECT_EQ(request.initiator_queue_depth(), 2u);
  EXPECT_EQ(request.max_receive_request_sge(), 3u);
  EXPECT_EQ(request.max_initiator_request_sge(), 4u);
  EXPECT_EQ(request.inline_data_size(), 5u);
  const QueuePairLimits limits = LimitsFromWire(request);
  EXPECT_EQ(limits.receive_depth, 1u);
  EXPECT_EQ(limits.initiator_depth, 2u);
  EXPECT_EQ(limits.receive_entries, 3u);
  EXPECT_EQ(limits.initiator_entries, 4u);
  EXPECT_EQ(limits.inline_bytes, 5u);
}

}  // namespace
}  // namespace rnicd::wire
