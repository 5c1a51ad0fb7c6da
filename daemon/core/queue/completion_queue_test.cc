#include "daemon/core/queue/completion_queue.h"

#include "daemon/core/session/core_fixture_test.h"

namespace rnicd::core {
namespace {

constexpr CompletionQueueId kId{5};
constexpr uint64_t kContext = 77;
constexpr uint32_t kQueueDepth = 4;

// A card whose queues cannot be resized.
class RigidQueue final : public provider::DeviceCompletionQueue {
 public:
  absl::Status Resize(uint32_t) override { return MakeError(ErrorReason::DEVICE_OUT_OF_RESOURCES); }
};
class RigidAdapter final : public provider::DeviceAdapter {
 public:
  const NdkAdapterInfo& info() const override { return info_; }
  absl::StatusOr<std::unique_ptr<provider::DeviceProtectionDomain>> CreateProtectionDomain() override {
    return MakeError(ErrorReason::DEVICE_NOT_CAPABLE);
  }
  absl::StatusOr<std::unique_ptr<provider::DeviceCompletionQueue>> CreateCompletionQueue(uint32_t) override {
    return std::make_unique<RigidQueue>();
  }

 private:
  const NdkAdapterInfo info_;
};

class CompletionQueueTest : public ::testing::Test {
 protected:
  CompletionQueueTest()
      : adapter_(std::make_shared<Adapter>("soft0", *world_.provider.OpenAdapter("soft0"), Charge())),
        queue_(NewQueue()) {}

  std::shared_ptr<CompletionQueue> NewQueue() { return NewQueue(adapter_, world_.ledger); }
  std::shared_ptr<CompletionQueue> NewQueue(const std::shared_ptr<Adapter>& adapter,
                                            const std::shared_ptr<Ledger>& ledger) {
    auto created = CompletionQueue::Create(adapter,
                                           {.depth = kQueueDepth,
                                            .context = kContext,
                                            .charge = std::make_shared<Charge>(),
                                            .entries = *Charge::Take(ledger, Resource::kCqEntries, kQueueDepth)},
                                           events_);
    EXPECT_TRUE(created.ok()) << created.status();
    (*created)->Publish(kId, [this] { ++overruns_; });
    return *created;
  }

  static void Push(CompletionQueue& queue, uint64_t context = 0, NtStatus status = NtStatus::kSuccess,
                   bool solicited = false) {
    queue.Push({.status = status, .request_context = context}, solicited);
  }
  void Push(uint64_t context = 0) { Push(*queue_, context); }
  void PushFailed() { Push(*queue_, 0, NtStatus::kAccessViolation); }
  void PushSolicited() { Push(*queue_, 0, NtStatus::kSuccess, /*solicited=*/true); }
  // Pushes one more completion than fits.
  static void Overrun(CompletionQueue& queue) {
    for (uint32_t count = 0; count <= kQueueDepth; ++count) {
      Push(queue);
    }
  }

  // The status of the next notification; empty when there is none.
  std::optional<NtStatus> Notification() {
    const auto event = events_.Pop();
    if (!event.has_value()) {
      return std::nullopt;
    }
    const auto& notified = std::get<CqNotified>(event->body);
    EXPECT_EQ(notified.queue, kId);
    EXPECT_EQ(notified.context, kContext);
    return notified.status;
  }
  std::vector<uint64_t> Take(uint32_t max) {
    std::vector<uint64_t> contexts;
    const auto results = queue_->Take(max);
    for (const Completion& result : *results) {
      contexts.push_back(result.request_context);
    }
    return contexts;
  }
  // The kind of completion for which a queue is armed.
  std::optional<CqNotifyType> WaitsFor(CompletionQueue& queue) {
    Push(queue);
    if (Notification() == NtStatus::kSuccess) {
      return CqNotifyType::kAny;
    }
    Push(queue, 0, NtStatus::kSuccess, /*solicited=*/true);
    if (Notification() == NtStatus::kSuccess) {
      return CqNotifyType::kSolicited;
    }
    Overrun(queue);
    return Notification() == NtStatus::kBufferOverflow ? std::optional(CqNotifyType::kErrors) : std::nullopt;
  }

  World world_;
  EventQueue events_;
  int overruns_ = 0;
  std::shared_ptr<Adapter> adapter_;
  std::shared_ptr<CompletionQueue> queue_;
};

TEST_F(CompletionQueueTest, CompletionsAreTakenInTheOrderTheyCame) {
  Push(1);
  Push(2);
  Push(3);
  EXPECT_EQ(Take(2), (std::vector<uint64_t>{1, 2}));
  EXPECT_EQ(Take(0), std::vector<uint64_t>{});
  EXPECT_EQ(Take(100), std::vector<uint64_t>{3});
  EXPECT_EQ(Take(100), std::vector<uint64_t>{});
}

TEST_F(CompletionQueueTest, AQueueThatIsNotArmedSaysNothing) {
  Push();
  PushFailed();
  PushSolicited();
  EXPECT_EQ(Notification(), std::nullopt);
}

TEST_F(CompletionQueueTest, OneArmingBringsOneNotificationHoweverManyCome) {
  queue_->Arm(CqNotifyType::kAny);
  Push();
  Push();
  EXPECT_EQ(Notification(), NtStatus::kSuccess);
  Push();
  EXPECT_EQ(Notification(), std::nullopt);
}

TEST_F(CompletionQueueTest, TheNineCombinationsOfTwoArmings) {
  constexpr CqNotifyType kAny = CqNotifyType::kAny;
  constexpr CqNotifyType kErrors = CqNotifyType::kErrors;
  constexpr CqNotifyType kSolicited = CqNotifyType::kSolicited;
  const struct {
    CqNotifyType first;
    CqNotifyType second;
    CqNotifyType effect;
  } rows[] = {
      {kAny, kAny, kAny},
      {kAny, kErrors, kAny},
      {kAny, kSolicited, kAny},
      {kErrors, kAny, kAny},
      {kErrors, kErrors, kErrors},
      {kErrors, kSolicited, kSolicited},
      {kSolicited, kAny, kAny},
      {kSolicited, kErrors, kSolicited},
      {kSolicited, kSolicited, kSolicited},
  };
  for (const auto& row : rows) {
    const auto queue = NewQueue();
    queue->Arm(row.first);
    queue->Arm(row.second);
    EXPECT_EQ(WaitsFor(*queue), row.effect) << static_cast<int>(row.first) << " " << static_cast<int>(row.second);
  }
}

TEST_F(CompletionQueueTest, SolicitedWaitsForASolicitedReceiveOrAFailure) {
  queue_->Arm(CqNotifyType::kSolicited);
  Push();
  EXPECT_EQ(Notification(), std::nullopt);
  PushFailed();
  EXPECT_EQ(Notification(), NtStatus::kSuccess);
  queue_->Arm(CqNotifyType::kSolicited);
  EXPECT_EQ(Notification(), std::nullopt);
  PushSolicited();
  EXPECT_EQ(Notification(), NtStatus::kSuccess);
}

TEST_F(CompletionQueueTest, AFailedCompletionSatisfiesAnyButNotErrors) {
  queue_->Arm(CqNotifyType::kErrors);
  PushFailed();
  EXPECT_EQ(Notification(), std::nullopt);
  queue_->Arm(CqNotifyType::kAny);
  EXPECT_EQ(Notification(), NtStatus::kSuccess);
}

TEST_F(CompletionQueueTest, ArmingNotifiesAtOnceWhenSomethingNewWaits) {
  Push();
  queue_->Arm(CqNotifyType::kAny);
  EXPECT_EQ(Notification(), NtStatus::kSuccess);
}

TEST_F(CompletionQueueTest, WhatWasThereAtTheLastNotificationDoesNotNotifyAgain) {
  queue_->Arm(CqNotifyType::kAny);
  PushSolicited();
  ASSERT_EQ(Notification(), NtStatus::kSuccess);
  queue_->Arm(CqNotifyType::kAny);
  queue_->Arm(CqNotifyType::kSolicited);
  EXPECT_EQ(Notification(), std::nullopt);
  Push();
  EXPECT_EQ(Notification(), NtStatus::kSuccess) << "the arming stands until something newer comes";
}

TEST_F(CompletionQueueTest, WhatCameAfterANotificationWasSentIsNewerThanIt) {
  queue_->Arm(CqNotifyType::kAny);
  Push();
  Push();
  ASSERT_EQ(Notification(), NtStatus::kSuccess);
  queue_->Arm(CqNotifyType::kAny);
  EXPECT_EQ(Notification(), NtStatus::kSuccess);
}

TEST_F(CompletionQueueTest, WhatWasTakenAlreadyDoesNotNotify) {
  PushSolicited();
  PushFailed();
  Take(2);
  queue_->Arm(CqNotifyType::kSolicited);
  queue_->Arm(CqNotifyType::kAny);
  EXPECT_EQ(Notification(), std::nullopt);
  Push();
  EXPECT_EQ(Notification(), NtStatus::kSuccess);
}

TEST_F(CompletionQueueTest, OfSeveralCompletionsTheOnesNotTakenNotify) {
  Push();
  PushSolicited();
  Take(1);
  queue_->Arm(CqNotifyType::kSolicited);
  EXPECT_EQ(Notification(), NtStatus::kSuccess);
}

TEST_F(CompletionQueueTest, ASecondNotificationWaitsUntilTheFirstWasFetched) {
  queue_->Arm(CqNotifyType::kAny);
  Push();
  queue_->Arm(CqNotifyType::kAny);
  Push();
  EXPECT_EQ(Notification(), NtStatus::kSuccess);
  EXPECT_EQ(Notification(), NtStatus::kSuccess);
  EXPECT_EQ(Notification(), std::nullopt);
}

TEST_F(CompletionQueueTest, WhileANotificationWaitsAtMostOneEntryIsInTheEvents) {
  int wakes = 0;
  ASSERT_TRUE(events_.Attach([&] { ++wakes; }));
  for (int round = 0; round < 3; ++round) {
    queue_->Arm(CqNotifyType::kAny);
    Push();
  }
  EXPECT_EQ(wakes, 2) << "once for attaching, once for the only entry";
}

TEST_F(CompletionQueueTest, ASecondNotificationIsDroppedWhenItsCompletionWasTakenMeanwhile) {
  queue_->Arm(CqNotifyType::kAny);
  Push();
  queue_->Arm(CqNotifyType::kAny);
  Push();
  Take(2);
  EXPECT_EQ(Notification(), NtStatus::kSuccess);
  EXPECT_EQ(Notification(), std::nullopt);
  Push();
  EXPECT_EQ(Notification(), NtStatus::kSuccess) << "the second arming still stands";
}

TEST_F(CompletionQueueTest, AFullQueueIsNoOverrun) {
  for (uint32_t count = 0; count < kQueueDepth; ++count) {
    Push(count);
  }
  EXPECT_FALSE(queue_->overrun());
  EXPECT_EQ(Take(1), std::vector<uint64_t>{0});
  Push(9);
  EXPECT_EQ(Take(kQueueDepth), (std::vector<uint64_t>{1, 2, 3, 9}));
  EXPECT_EQ(overruns_, 0);
}

TEST_F(CompletionQueueTest, AnOverrunIsReportedOnceToAQueueThatIsArmedForAnything) {
  for (const CqNotifyType type : {CqNotifyType::kErrors, CqNotifyType::kAny, CqNotifyType::kSolicited}) {
    const auto queue = NewQueue();
    for (uint32_t count = 0; count < kQueueDepth; ++count) {
      Push(*queue);
    }
    queue->Arm(type);
    if (type == CqNotifyType::kAny) {
      ASSERT_EQ(Notification(), NtStatus::kSuccess);
      queue->Arm(type);
    }
    Push(*queue);
    EXPECT_EQ(Notification(), NtStatus::kBufferOverflow) << static_cast<int>(type);
    queue->Arm(CqNotifyType::kAny);
    Push(*queue);
    EXPECT_EQ(Notification(), std::nullopt) << "the overrun is the last notification of a queue";
  }
  EXPECT_EQ(overruns_, 3) << "each is reported once";
}

TEST_F(CompletionQueueTest, AnOverrunOfAQueueThatIsNotArmedIsReportedByTheNextArming) {
  Overrun(*queue_);
  EXPECT_EQ(Notification(), std::nullopt);
  queue_->Arm(CqNotifyType::kErrors);
  EXPECT_EQ(Notification(), NtStatus::kBufferOverflow);
  queue_->Arm(CqNotifyType::kErrors);
  EXPECT_EQ(Notification(), std::nullopt);
}

TEST_F(CompletionQueueTest, ANotificationUnderWayReportsTheOverrunAndStaysTheOnlyOne) {
  queue_->Arm(CqNotifyType::kAny);
  Push();
  queue_->Arm(CqNotifyType::kAny);
  Overrun(*queue_);
  EXPECT_EQ(Notification(), NtStatus::kBufferOverflow);
  EXPECT_EQ(Notification(), std::nullopt);
}

TEST_F(CompletionQueueTest, AfterAnOverrunNothingCanBeTakenAndNothingComesBack) {
  Overrun(*queue_);
  EXPECT_TRUE(queue_->overrun());
  EXPECT_THAT(queue_->Take(1).status(), FailsAt(ErrorReason::CQ_OVERRUN, "cq_id"));
  EXPECT_THAT(queue_->Take(0).status(), FailsAt(ErrorReason::CQ_OVERRUN, "cq_id"));
  EXPECT_THAT(queue_->Resize(100), FailsAt(ErrorReason::CQ_OVERRUN, "cq_id"));
  EXPECT_EQ(world_.Held(), "cq_entries=4 ") << "a refused resize charges nothing";
}

TEST_F(CompletionQueueTest, ALargerQueueHoldsMoreAndKeepsWhatWasThere) {
  Push(1);
  ASSERT_TRUE(queue_->Resize(kQueueDepth + 1).ok());
  EXPECT_EQ(world_.Held(), "cq_entries=5 ");
  for (uint32_t count = 0; count < kQueueDepth; ++count) {
    Push(2 + count);
  }
  EXPECT_EQ(Take(100), (std::vector<uint64_t>{1, 2, 3, 4, 5}));
}

TEST_F(CompletionQueueTest, AQueueShrinksToItsBacklogAndNotBelow) {
  Push(1);
  Push(2);
  EXPECT_THAT(queue_->Resize(1), FailsAt(ErrorReason::CQ_BACKLOG, "cq_depth"));
  EXPECT_EQ(world_.Held(), "cq_entries=4 ");
  ASSERT_TRUE(queue_->Resize(2).ok());
  EXPECT_EQ(world_.Held(), "cq_entries=2 ");
  Push(3);
  EXPECT_TRUE(queue_->overrun());
}

TEST_F(CompletionQueueTest, AboveTheOwnersLimitAQueueKeepsItsDepth) {
  Limits limits;
  limits[Resource::kCqEntries] = 6;
  const auto ledger = std::make_shared<Ledger>(limits, nullptr);
  queue_ = NewQueue(adapter_, ledger);
  EXPECT_THAT(queue_->Resize(7), FailsWith(ErrorReason::QUOTA_CQ_ENTRIES));
  EXPECT_EQ(ledger->used(Resource::kCqEntries), kQueueDepth);
  EXPECT_TRUE(queue_->Resize(6).ok()) << "only the difference is new";
  EXPECT_TRUE(queue_->Resize(5).ok()) << "less than now always fits";
  EXPECT_EQ(ledger->used(Resource::kCqEntries), 5u);
}

TEST_F(CompletionQueueTest, WhenTheCardRefusesAResizeDepthAndChargeStay) {
  queue_ = NewQueue(std::make_shared<Adapter>("rigid", std::make_unique<RigidAdapter>(), Charge()),
                    std::make_shared<Ledger>(Limits{}, world_.ledger));
  const std::string before = world_.Held();
  for (const uint32_t depth : {kQueueDepth * 2, kQueueDepth / 2}) {
    EXPECT_THAT(queue_->Resize(depth), FailsWith(ErrorReason::DEVICE_OUT_OF_RESOURCES));
    EXPECT_EQ(world_.Held(), before);
  }
  for (uint32_t count = 0; count < kQueueDepth; ++count) {
    Push();
  }
  EXPECT_FALSE(queue_->overrun());
  Push();
  EXPECT_TRUE(queue_->overrun());
}

TEST_F(CompletionQueueTest, ClosingWithdrawsANotificationAndGivesTheEntriesBack) {
  queue_->Arm(CqNotifyType::kAny);
  Push();
  EXPECT_EQ(*queue_->Close(nullptr), Closable::CloseResult::kClosed);
  EXPECT_EQ(Notification(), std::nullopt);
  EXPECT_EQ(world_.Held(), "");
  queue_->Arm(CqNotifyType::kAny);
  EXPECT_EQ(Notification(), std::nullopt) << "a thread that found the queue before may still arm it";
}

TEST_F(CompletionQueueTest, AQueueThatWaitsToBeClosedGoesOnUntilItIs) {
  Closable::Hold pair = *queue_->Acquire();
  bool closed = false;
  ASSERT_EQ(*queue_->Close([&] { closed = true; }), Closable::CloseResult::kPending);
  queue_->Arm(CqNotifyType::kAny);
  Push(8);
  EXPECT_EQ(Notification(), NtStatus::kSuccess);
  EXPECT_EQ(Take(1), std::vector<uint64_t>{8});
  EXPECT_THAT(queue_->Acquire().status(), FailsWith(ErrorReason::OBJECT_CLOSING));
  pair.Release();
  EXPECT_TRUE(closed);
}

TEST_F(CompletionQueueTest, HoldsItsAdapterOpen) {
  bool adapter_closed = false;
  ASSERT_EQ(*adapter_->Close([&] { adapter_closed = true; }), Closable::CloseResult::kPending);
  EXPECT_THAT(CompletionQueue::Create(adapter_, {.depth = 1}, events_).status(),
              FailsAt(ErrorReason::OBJECT_CLOSING, "adapter_id"));
  ASSERT_TRUE(queue_->Close(nullptr).ok());
  EXPECT_TRUE(adapter_closed);
}

TEST_F(CompletionQueueTest, ACardThatRefusesLeavesNothingBehind) {
  ASSERT_TRUE(queue_->Close(nullptr).ok());
  world_.plan.FailCreateCompletionQueue(MakeError(ErrorReason::DEVICE_OUT_OF_RESOURCES), 1);
  CompletionQueue::Options options{.depth = kQueueDepth,
                                   .entries = *Charge::Take(world_.ledger, Resource::kCqEntries, kQueueDepth)};
  EXPECT_THAT(CompletionQueue::Create(adapter_, std::move(options), events_).status(),
              FailsWith(ErrorReason::DEVICE_OUT_OF_RESOURCES));
  EXPECT_EQ(world_.Held(), "");
  EXPECT_EQ(*adapter_->Close(nullptr), Closable::CloseResult::kClosed);
}

}  // namespace
}  // namespace rnicd::core
