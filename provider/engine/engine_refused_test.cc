// Requests that were refused and complete all the same, in their place. One thread, and a scripted card.

#include "provider/engine/queue_pair_engine.h"
#include "provider/engine/scripted_card_fake.h"

namespace rnicd::provider {
namespace {

constexpr ErrorReason kRefusalReason = ErrorReason::SGE_COUNT;
const NtStatus kRefusal = RowOf(kRefusalReason).ntstatus;

Completion Refusal(uint64_t context, OperationType type = kWritten) {
  return {.request_context = context, .type = type, .status = kRefusal, .refusal = kRefusalReason};
}

TEST(EngineRefused, WaitsForItsTurnAndFailsTheQueuePair) {
  Connected side;
  ASSERT_TRUE(side.near.engine().Enqueue(Write(1)).ok());
  side.near.EnqueueRefused(Refusal(2));
  side.near.Post({Write(3)});
  EXPECT_EQ(side.card.begun, Contexts{1});
  EXPECT_EQ(side.near.initiated(), Outcomes{});
  side.card.End(1);
  EXPECT_EQ(side.near.initiated(), (Outcomes{{1, kWritten, kOk}, {2, kWritten, kRefusal}, {3, kWritten, kCancelled}}));
  EXPECT_EQ(side.near.completions()[1].refusal, kRefusalReason);
  EXPECT_EQ(side.near.engine().state(), QueuePairState::kError);
  EXPECT_EQ(side.card.begun, Contexts{1}) << "the card never sees it";
}

TEST(EngineRefused, IsReportedAtOnceBeforeConnect) {
  EngineFabric fabric;
  EngineSide side(fabric, "alone");
  side.EnqueueRefused(Refusal(1));
  side.EnqueueRefused(Refusal(2));
  side.engine().Run();
  EXPECT_EQ(side.initiated(), (Outcomes{{1, kWritten, kRefusal}, {2, kWritten, kCancelled}}));
  EXPECT_EQ(side.engine().state(), QueuePairState::kError);
}

TEST(EngineRefused, IsCancelledBehindAFailure) {
  Connected side;
  side.near.Flush();
  side.near.EnqueueRefused(Refusal(1));
  side.near.EnqueueRefused(Refusal(2, kReceived));
  side.near.engine().Run();
  EXPECT_EQ(side.near.initiated(), (Outcomes{{1, kWritten, kCancelled}}));
  EXPECT_EQ(side.near.received(), (Outcomes{{2, kReceived, kCancelled}}));
}

TEST(EngineRefused, AReceiveFailsTheQueuePairAtOnceBehindThoseBefore) {
  Connected side;
  side.near.Post({Receive(1)});
  side.near.EnqueueRefused(Refusal(2, kReceived));
  side.near.engine().Run();
  EXPECT_EQ(side.near.received(), (Outcomes{{1, kReceived, kCancelled}, {2, kReceived, kRefusal}}));
  EXPECT_EQ(side.near.engine().state(), QueuePairState::kError);
}

TEST(EngineRefused, OneHasRoomAboveTheDepthOfEachQueue) {
  Connected side({}, {.receive_depth = 1, .initiator_depth = 1});
  side.near.Post({Write(1)});
  side.near.EnqueueRefused(Refusal(2));
  side.near.EnqueueRefused(Refusal(3));
  side.near.engine().Run();
  EXPECT_EQ(side.near.engine().state(), QueuePairState::kReadyToSend);
  side.card.End(1);
  EXPECT_EQ(side.near.initiated(), (Outcomes{{1, kWritten, kOk}, {2, kWritten, kRefusal}}));
}

TEST(EngineRefused, CompletionsAreNumberedWithTheSilentOnes) {
  Connected side;
  side.card.default_answer = BeginResult::Done(kOk);
  side.near.Post({Silent(Write(1)), Write(2), Silent(Write(3)), Write(4)});
  ASSERT_EQ(side.near.completions().size(), 2u);
  EXPECT_EQ(side.near.completions()[0].number, 2u);
  EXPECT_EQ(side.near.completions()[1].number, 4u);
}

}  // namespace
}  // namespace rnicd::provider
