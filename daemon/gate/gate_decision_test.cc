// Decisions that the gate reports to the audit log.
#include "daemon/gate/gate_fixture_test.h"
#include "rnicd/v1/memory_service.pb.h"
#include "rnicd/v1/session_service.pb.h"

namespace rnicd::gate {
namespace {

using core::FailsAt;
using core::FailsWith;

class GateDecisionTest : public GateTest {
 protected:
  Decided OnlyDecision() {
    const std::vector<Decided> decisions = observer_.decisions();
    EXPECT_EQ(decisions.size(), 1u);
    return decisions.empty() ? Decided() : decisions.front();
  }
};

TEST_F(GateDecisionTest, ASuccessIsOneOnlyWhereItsRowSaysSo) {
  const auto connection = Connect();
  ASSERT_TRUE(connection->OpenSession("", "").ok());
  EXPECT_EQ(Try(connection, core::Row("SessionService.GetSession")), absl::StatusCode::kOk);
  EXPECT_EQ(Try(connection, core::Row("QueueService.Post")), absl::StatusCode::kOk);
  EXPECT_TRUE(observer_.decisions().empty());
  EXPECT_EQ(Try(connection, core::Row("MemoryService.CreatePd")), absl::StatusCode::kOk);
  EXPECT_EQ(OnlyDecision().what, "MemoryService.CreatePd");
  EXPECT_TRUE(OnlyDecision().status.ok());
}

TEST_F(GateDecisionTest, EveryRefusalIsOneWhateverItsRowSays) {
  const auto connection = Connect();
  EXPECT_EQ(Try(connection, core::Row("SessionService.GetSession")), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Try(connection, core::Row("AdminService.ListSessions")), absl::StatusCode::kPermissionDenied);
  ASSERT_TRUE(connection->OpenSession("", "").ok());
  Try(connection, core::Row("QueueService.Post"), nullptr, MakeError(ErrorReason::OBJECT_NOT_FOUND, "qp_id"));
  const std::vector<Decided> decisions = observer_.decisions();
  ASSERT_EQ(decisions.size(), 3u);
  EXPECT_THAT(decisions[0].status, FailsWith(ErrorReason::SESSION_REQUIRED));
  EXPECT_THAT(decisions[1].status, FailsWith(ErrorReason::METHOD_NOT_PERMITTED));
  EXPECT_THAT(decisions[2].status, FailsAt(ErrorReason::OBJECT_NOT_FOUND, "qp_id"));
}

TEST_F(GateDecisionTest, ARefusalIsCountedForItsTenantBeforeAndInASession) {
  const auto connection = Connect();
  Try(connection, core::Row("SessionService.GetSession"));
  ASSERT_TRUE(connection->OpenSession("", "").ok());
  Try(connection, core::Row("QueueService.Post"), nullptr, MakeError(ErrorReason::OBJECT_NOT_FOUND, "qp_id"));
  Try(connection, core::Row("QueueService.Post"));
  NewCall(connection)->Cancel();
  const auto refusals = connection->session()->tenant().tally()->refusals();
  EXPECT_THAT(refusals, ::testing::UnorderedElementsAre(::testing::Pair(ErrorReason::SESSION_REQUIRED, 1u),
                                                        ::testing::Pair(ErrorReason::OBJECT_NOT_FOUND, 1u)));
}

TEST_F(GateDecisionTest, ACallThatItsClientGaveUpIsNone) {
  NewCall(Connect())->Cancel();
  EXPECT_TRUE(observer_.decisions().empty());
}

TEST_F(GateDecisionTest, SaysWhoAsWhichTenantInWhichSessionAndAboutWhat) {
  const auto connection = Connect(7);
  const auto session = connection->OpenSession("", "");
  ASSERT_TRUE(session.ok());
  v1::CreateMrRequest request;
  request.set_pd_id(4);
  const auto create = [](Call&, const v1::CreateMrRequest&, v1::CreateMrResponse* response) {
    response->set_mr_id(17);
    return absl::OkStatus();
  };
  Run(connection, Serve(core::Row("MemoryService.CreateMr"), create), &request);
  const Decided decided = OnlyDecision();
  EXPECT_EQ(decided.what, "MemoryService.CreateMr");
  EXPECT_EQ(decided.process, 7u);
  EXPECT_EQ(decided.tenant, (*session)->tenant().name());
  EXPECT_FALSE(decided.tenant.empty());
  EXPECT_EQ(decided.session, (*session)->id());
  EXPECT_EQ(decided.object, "pd_id=4 mr_id=17");
}

TEST_F(GateDecisionTest, ARefusedCallNamesNothingOfItsResponse) {
  const auto connection = Connect();
  ASSERT_TRUE(connection->OpenSession("", "").ok());
  v1::CreateMrRequest request;
  request.set_pd_id(4);
  const auto create = [](Call&, const v1::CreateMrRequest&, v1::CreateMrResponse* response) {
    response->set_mr_id(17);
    return MakeError(ErrorReason::QUOTA_REGIONS);
  };
  Run(connection, Serve(core::Row("MemoryService.CreateMr"), create), &request);
  EXPECT_EQ(OnlyDecision().object, "pd_id=4");
}

TEST_F(GateDecisionTest, TheSessionOfACallThatOpensOneIsTheOpenedOne) {
  const auto connection = Connect();
  v1::OpenSessionRequest request;
  request.set_label("a label is the client's");
  request.set_grant("");
  std::shared_ptr<core::Session> session;
  const auto open = [&](Call& call, const v1::OpenSessionRequest& asked, v1::OpenSessionResponse*) {
    session = call.connection().OpenSession(asked.label(), asked.grant()).value_or(nullptr);
    return absl::OkStatus();
  };
  Run(connection, Serve(core::Row("SessionService.OpenSession"), open), &request);
  ASSERT_NE(session, nullptr);
  EXPECT_EQ(OnlyDecision().session, session->id());
  EXPECT_EQ(OnlyDecision().tenant, session->tenant().name());
  EXPECT_EQ(OnlyDecision().object, "");
}

TEST_F(GateDecisionTest, AGrantMakesTheTenantAndIsNamedNowhere) {
  const auto devices = std::make_shared<core::DeviceSet>(core::DeviceSet{.resource = "r", .ids = {"m-0"}});
  const auto grant = world_.tenants.CreateGrant({.name = "pod-7", .devices = devices});
  ASSERT_TRUE(grant.ok()) << grant.status();
  const auto connection = Connect();
  v1::OpenSessionRequest request;
  request.set_grant(grant->secret);
  const Method open = Serve(core::Row("SessionService.OpenSession"),
                            [](Call& call, const v1::OpenSessionRequest& asked, v1::OpenSessionResponse*) {
                              return call.connection().OpenSession("", asked.grant()).status();
                            });
  Run(connection, open, &request);
  request.set_grant(grant->secret + "x");
  Run(Connect(2), open, &request);
  const std::vector<Decided> decisions = observer_.decisions();
  ASSERT_EQ(decisions.size(), 2u);
  EXPECT_EQ(decisions[0].tenant, "grant/pod-7");
  EXPECT_EQ(decisions[0].workload->devices, devices) << "of the session's tenant, not of the connection's";
  EXPECT_THAT(decisions[1].status, FailsWith(ErrorReason::GRANT_REFUSED));
  for (const Decided& decided : decisions) {
    for (const std::string& text : {decided.object, decided.note, decided.status.ToString()}) {
      EXPECT_EQ(text.find(grant->secret), std::string::npos) << text;
    }
  }
}

TEST_F(GateDecisionTest, BeforeASessionTheTenantIsTheConnections) {
  Try(Connect(), core::Row("SessionService.OpenSession"));
  EXPECT_EQ(OnlyDecision().session, SessionId{});
  const auto tenant = world_.tenants.TenantOf(core::CallerNumbered(1), "");
  ASSERT_TRUE(tenant.ok());
  EXPECT_EQ(OnlyDecision().tenant, (*tenant)->name());
  EXPECT_EQ(OnlyDecision().workload, (*tenant)->workload());
}

TEST_F(GateDecisionTest, OperatorsAreNobodysTenant) {
  Try(Connect(1, core::Role::kOperator), core::Row("AdminService.Drain"));
  EXPECT_EQ(OnlyDecision().tenant, "");
  EXPECT_EQ(OnlyDecision().workload, nullptr);
  EXPECT_TRUE(world_.tenants.Tenants().empty()) << "an operator's connection must not make one";
}

TEST_F(GateDecisionTest, ANoteCountsUntilTheCallEnds) {
  const auto connection = Connect();
  ASSERT_TRUE(connection->OpenSession("", "").ok());
  const auto call = NewCall(connection, core::Row("MemoryService.BatchCreateMr"));
  ASSERT_NE(call, nullptr);
  call->SetNote("refused=3 of=64");
  call->Finish(absl::OkStatus());
  call->SetNote("too late");
  EXPECT_EQ(OnlyDecision().note, "refused=3 of=64");
}

}  // namespace
}  // namespace rnicd::gate
