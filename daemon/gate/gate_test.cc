#include "daemon/gate/gate.h"

#include "daemon/gate/gate_fixture_test.h"

namespace rnicd::gate {
namespace {

using core::FailsWith;

TEST_F(GateTest, AMethodOfAnotherRoleIsNotPermitted) {
  const auto workload = Connect();
  const auto admin = Connect(2, core::Role::kOperator);
  EXPECT_EQ(Try(workload, core::Row("AdminService.GetStatus")), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(Try(admin, core::Row("SessionService.OpenSession")), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(Try(admin, core::Row("AdminService.GetStatus")), absl::StatusCode::kOk);
  EXPECT_EQ(Try(admin, core::Row("AdapterService.ListAdapters")), absl::StatusCode::kOk);
  const auto rpcs = observer_.rpcs();
  ASSERT_EQ(rpcs.size(), 4u) << "refused calls count too";
  EXPECT_EQ(rpcs[0].method, "AdminService.GetStatus");
  EXPECT_EQ(rpcs[0].code, absl::StatusCode::kPermissionDenied);
  EXPECT_FALSE(rpcs[0].has_duration) << "a stream lives as long as its client likes";
}

TEST_F(GateTest, AMethodThatNeedsASessionIsRefusedWithoutOne) {
  const auto connection = Connect();
  EXPECT_EQ(Try(connection, core::Row("MemoryService.CreateMr")), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(connection->OpenSession("", "").ok());
  EXPECT_EQ(Try(connection, core::Row("MemoryService.CreateMr")), absl::StatusCode::kOk);
}

TEST_F(GateTest, AnEndingSessionIsNotReached) {
  const auto connection = Connect();
  const auto session = connection->OpenSession("", "");
  ASSERT_TRUE(session.ok());
  world_.End(*session);
  EXPECT_EQ(Try(connection, core::Row("MemoryService.CreateMr")), absl::StatusCode::kFailedPrecondition);
}

TEST_F(GateTest, AConnectionWhoseSessionEndedTellsTheCause) {
  const auto connection = Connect();
  EXPECT_EQ(std::string(connection->NoSession().message()), RowOf(ErrorReason::SESSION_REQUIRED).sentence);
  const auto session = connection->OpenSession("", "");
  ASSERT_TRUE(session.ok());
  world_.End(*session, core::EndCause::kEvicted);
  EXPECT_THAT(connection->NoSession(), FailsWith(ErrorReason::SESSION_REQUIRED));
  EXPECT_NE(std::string(connection->NoSession().message()).find("(its session ended: evicted)"), std::string::npos)
      << connection->NoSession();
}

TEST_F(GateTest, OnlyTheFirstEndOfACallCounts) {
  int filled = 0;
  const auto fill = [&] { ++filled; };
  {
    const auto call = NewCall(Connect());
    call->WhileLive(fill);
    EXPECT_TRUE(call->Finish(absl::OkStatus(), fill));
    EXPECT_EQ(filled, 2);
    call->Cancel();
    EXPECT_FALSE(call->Finish(MakeError(ErrorReason::INTERNAL_FAULT), fill));
    call->WhileLive(fill);
  }
  EXPECT_EQ(filled, 2) << "nothing is written into a destroyed response";
  ASSERT_EQ(observer_.rpcs().size(), 1u);
  EXPECT_EQ(observer_.rpcs()[0].code, absl::StatusCode::kOk);
}

TEST_F(GateTest, ACancelledCallTakesNoResponse) {
  const auto call = NewCall(Connect());
  call->Cancel();
  EXPECT_FALSE(call->Finish(absl::OkStatus(), [] { FAIL() << "the response may be destroyed"; }));
  ASSERT_EQ(observer_.rpcs().size(), 1u);
  EXPECT_EQ(observer_.rpcs()[0].code, absl::StatusCode::kCancelled);
}

TEST_F(GateTest, ACancelledCallStopsWhatWaitsForIt) {
  const auto call = NewCall(Connect());
  int stopped = 0;
  call->OnCancel([&] { ++stopped; });
  EXPECT_EQ(stopped, 0);
  call->Cancel();
  call->Cancel();
  EXPECT_EQ(stopped, 1);
  call->OnCancel([&] { ++stopped; });
  EXPECT_EQ(stopped, 2) << "the call had ended before";
}

TEST_F(GateTest, ACallThatEndsByItselfDropsItsHook) {
  const auto call = NewCall(Connect());
  const auto held = std::make_shared<int>(0);
  call->OnCancel([held] { ++*held; });
  EXPECT_EQ(held.use_count(), 2);
  call->Finish(absl::OkStatus());
  EXPECT_EQ(held.use_count(), 1);
  call->Cancel();
  EXPECT_EQ(*held, 0);
}

TEST_F(GateTest, ACallThatIsDroppedEndsAsAFault) {
  testing::internal::CaptureStderr();
  NewCall(Connect());
  ASSERT_EQ(observer_.rpcs().size(), 1u);
  EXPECT_EQ(observer_.rpcs()[0].code, RowOf(ErrorReason::INTERNAL_FAULT).code);
  EXPECT_TRUE(logger_.FlushUntil(std::chrono::steady_clock::now() + std::chrono::seconds(20)));
  EXPECT_NE(testing::internal::GetCapturedStderr().find("reason=INTERNAL_FAULT"), std::string::npos)
      << "a fault of ours is worth an operator's attention";
}

TEST_F(GateTest, AConnectionCarriesOneSession) {
  const auto connection = Connect();
  const auto session = connection->OpenSession("", "");
  ASSERT_TRUE(session.ok());
  EXPECT_THAT(connection->OpenSession("", "").status(), FailsWith(ErrorReason::SESSION_ALREADY_OPEN));
  EXPECT_THAT(connection->JoinSession((*session)->id()).status(), FailsWith(ErrorReason::SESSION_ALREADY_OPEN));
  EXPECT_EQ(connection->session(), *session);
}

TEST_F(GateTest, AFailedOpenLeavesTheConnectionFree) {
  const auto connection = Connect();
  EXPECT_THAT(connection->OpenSession("\n", "").status(), FailsWith(ErrorReason::FIELD_OUT_OF_RANGE));
  EXPECT_THAT(connection->JoinSession(SessionId{1}).status(), FailsWith(ErrorReason::SESSION_NOT_FOUND));
  EXPECT_EQ(connection->session(), nullptr);
  EXPECT_TRUE(connection->OpenSession("", "").ok());
}

TEST_F(GateTest, ASessionOutlivesOneOfItsConnections) {
  const auto first = Connect();
  const auto second = Connect();
  const auto session = first->OpenSession("", "");
  ASSERT_TRUE(second->JoinSession((*session)->id()).ok());
  first->Disconnected();
  EXPECT_FALSE((*session)->ending());
  second->Disconnected();
  second->Disconnected();
  EXPECT_TRUE(world_.registry.WaitUntilEmpty(std::chrono::steady_clock::now() + kTimeout));
}

TEST_F(GateTest, ADisconnectedConnectionOpensNothing) {
  const auto connection = Connect();
  connection->Disconnected();
  EXPECT_THAT(connection->OpenSession("", "").status(), FailsWith(ErrorReason::SESSION_ENDING));
  EXPECT_EQ(world_.Held(), "");
}

TEST_F(GateTest, OnlyAConnectionThatDoesAndHoldsNothingIsSilent) {
  const auto connection = Connect();
  const Instant before = world_.clock.Now();
  world_.clock.Advance(std::chrono::milliseconds(100));
  EXPECT_TRUE(connection->SilentSince(world_.clock.Now()));
  EXPECT_FALSE(connection->SilentSince(before));
  {
    const auto call = NewCall(connection);
    EXPECT_FALSE(connection->SilentSince(world_.clock.Now())) << "a call is running";
  }
  EXPECT_FALSE(connection->SilentSince(world_.clock.Now())) << "a call has just ended";
  world_.clock.Advance(std::chrono::milliseconds(100));
  EXPECT_TRUE(connection->SilentSince(world_.clock.Now()));
  ASSERT_TRUE(connection->OpenSession("", "").ok());
  EXPECT_FALSE(connection->SilentSince(world_.clock.Now())) << "it holds a session";
}

}  // namespace
}  // namespace rnicd::gate
