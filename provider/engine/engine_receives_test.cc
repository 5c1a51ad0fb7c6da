#include "provider/engine/engine_receives.h"

#include "provider/engine/scripted_card_fake.h"

namespace rnicd::provider {
namespace {

uint64_t PushReceive(EngineReceives& receives) { return receives.Push(std::make_unique<EngineRequest>()).serial; }

// Serials of all that can be reported.
Contexts ReportAll(EngineReceives& receives) {
  Contexts serials;
  while (const std::unique_ptr<EngineRequest> receive = receives.BeginReport()) {
    serials.push_back(receive->serial);
    receives.EndReport();
  }
  return serials;
}

TEST(EngineReceives, TheOldestAreTakenAndReportedFirst) {
  EngineReceives receives(4);
  const uint64_t first = PushReceive(receives);
  const uint64_t second = PushReceive(receives);
  EXPECT_EQ(receives.TakeOldest()->serial, first);
  EXPECT_EQ(receives.TakeOldest()->serial, second);
  EXPECT_TRUE(receives.End(second, {}));
  EXPECT_EQ(ReportAll(receives), Contexts{});
  EXPECT_TRUE(receives.End(first, {}));
  EXPECT_FALSE(receives.End(first, {}));
  EXPECT_EQ(ReportAll(receives), (Contexts{first, second}));
  EXPECT_TRUE(receives.idle());
}

TEST(EngineReceives, OneThreadReports) {
  EngineReceives receives(4);
  for (int count = 0; count < 2; ++count) {
    ASSERT_TRUE(receives.End(PushReceive(receives), {}));
  }
  ASSERT_NE(receives.BeginReport(), nullptr);
  EXPECT_EQ(receives.BeginReport(), nullptr) << "another thread is at it";
  EXPECT_FALSE(receives.idle());
  receives.EndReport();
  EXPECT_NE(receives.BeginReport(), nullptr);
}

TEST(EngineReceives, ASenderThatFoundNoneIsWokenOnceByTheNext) {
  EngineReceives receives(4);
  EXPECT_FALSE(receives.WakesSender());
  EXPECT_EQ(receives.TakeOldest(), nullptr);
  EXPECT_FALSE(receives.WakesSender());
  PushReceive(receives);
  EXPECT_TRUE(receives.WakesSender());
  EXPECT_FALSE(receives.WakesSender());
}

TEST(EngineReceives, WhatIsTakenIsNotAbandonedAndWhatComesAfterAFailureIsCancelled) {
  EngineReceives receives(4);
  const uint64_t taken = PushReceive(receives);
  const uint64_t waiting = PushReceive(receives);
  ASSERT_NE(receives.Take(taken), nullptr);
  receives.Fail();
  receives.Abandon();
  EXPECT_EQ(receives.Take(waiting), nullptr);
  EXPECT_EQ(ReportAll(receives), Contexts{});
  const uint64_t late = PushReceive(receives);
  EXPECT_TRUE(receives.End(taken, {}));
  EXPECT_EQ(ReportAll(receives), (Contexts{taken, waiting, late}));
}

TEST(EngineReceives, RoomIsForAsManyAsItIsDeepAndForNoneOnceItIsShut) {
  EngineReceives receives(1);
  EXPECT_TRUE(receives.CheckRoom().ok());
  PushReceive(receives);
  EXPECT_TRUE(FailedWith(receives.CheckRoom(), ErrorReason::QUEUE_FULL));
  receives.UndoPush();
  EXPECT_TRUE(receives.CheckRoom().ok());
  EXPECT_TRUE(receives.Shut());
  EXPECT_FALSE(receives.Shut());
  EXPECT_TRUE(FailedWith(receives.CheckRoom(), ErrorReason::QP_NOT_CONNECTED));
}

}  // namespace
}  // namespace rnicd::provider
