// Rate limits: the calls that count, the party they count against, and the delay of the refusal.
#include "daemon/gate/gate_fixture_test.h"

namespace rnicd::gate {
namespace {

using core::FailsWith;

constexpr uint32_t kTenantUid = 1000;
constexpr uint32_t kRatedSessionUid = 2000;
constexpr uint32_t kNobodyUid = 3000;
constexpr uint64_t kTenantRate = 20;
constexpr uint64_t kSessionRate = 25;
constexpr int kRateWithoutTenant = 50;

core::TenantRule RuleFor(const std::string& name, uint32_t uid, const core::TenantLimits& limits) {
  core::TenantRule rule{.name = name, .limits = limits};
  rule.matches.push_back(core::Matcher{.uid = uid});
  return rule;
}

core::WorldOptions RatedWorld() {
  core::Policy policy;
  policy.tenants.push_back(RuleFor("rated", kTenantUid, {.tenant_rate = {.per_second = kTenantRate}}));
  policy.tenants.push_back(RuleFor("sessions", kRatedSessionUid, {.session_rate = {.per_second = kSessionRate}}));
  core::WorldOptions options;
  options.policy = policy;
  return options;
}

class GateRateTest : public GateTest {
 protected:
  GateRateTest() : GateTest(RatedWorld()) {}

  std::shared_ptr<ConnectionContext> ConnectAs(uint32_t uid, uint64_t process = 1) {
    return Connect(process, core::Role::kWorkload, uid);
  }
  // Number of `count` calls, one after the other, that pass while the clock stands still.
  int Passed(const std::shared_ptr<ConnectionContext>& connection, int count,
             const core::Operation& row = core::Row("AdapterService.ListAdapters")) {
    int passed = 0;
    for (int call = 0; call < count; ++call) {
      passed += Try(connection, row) == absl::StatusCode::kOk ? 1 : 0;
    }
    return passed;
  }
  // Uses up the connection's rate.
  void Exhaust(const std::shared_ptr<ConnectionContext>& connection) {
    int calls = 0;
    while (Passed(connection, 1) == 1 && calls <= kRateWithoutTenant) {
      ++calls;
    }
    EXPECT_LE(calls, kRateWithoutTenant);
  }
};

TEST_F(GateRateTest, ATenantMayCallAsOftenAsItsRateSays) {
  const auto connection = ConnectAs(kTenantUid);
  EXPECT_EQ(Passed(connection, kTenantRate + 2), static_cast<int>(kTenantRate));
  world_.clock.Advance(std::chrono::milliseconds(1000 / kTenantRate));
  EXPECT_EQ(Passed(connection, 2), 1) << "no more than the time gives";
  world_.clock.Advance(std::chrono::seconds(10));
  EXPECT_EQ(Passed(connection, kTenantRate + 2), static_cast<int>(kTenantRate)) << "a pause is not saved up for ever";
}

TEST_F(GateRateTest, TheRefusalSaysTheRate) {
  const auto connection = ConnectAs(kTenantUid);
  Passed(connection, kTenantRate + 1);
  const std::vector<Decided> decisions = observer_.decisions();
  ASSERT_EQ(decisions.size(), 1u);
  EXPECT_EQ(decisions[0].what, "AdapterService.ListAdapters");
  EXPECT_EQ(decisions[0].tenant, "rated");
  EXPECT_THAT(decisions[0].status, FailsWith(ErrorReason::RATE_LIMITED));
  const ErrorInfo info = ErrorInfoOf(decisions[0].status);
  EXPECT_EQ(info.limit, kTenantRate);
  EXPECT_EQ(info.used, kTenantRate);
  EXPECT_EQ(info.requested, 1u);
}

TEST_F(GateRateTest, ConnectionsAndSessionsOfATenantShareItsRate) {
  const auto first = ConnectAs(kTenantUid, 1);
  const auto second = ConnectAs(kTenantUid, 2);
  ASSERT_TRUE(first->OpenSession("", "").ok());
  EXPECT_EQ(Passed(first, 15) + Passed(second, 7), static_cast<int>(kTenantRate));
}

TEST_F(GateRateTest, EachSessionHasARateOfItsOwn) {
  const auto first = ConnectAs(kRatedSessionUid, 1);
  const auto second = ConnectAs(kRatedSessionUid, 2);
  EXPECT_EQ(Passed(first, 100), 100) << "without a session only the tenant's rate counts, and it has none";
  ASSERT_TRUE(first->OpenSession("", "").ok());
  ASSERT_TRUE(second->OpenSession("", "").ok());
  EXPECT_EQ(Passed(first, kSessionRate + 2), static_cast<int>(kSessionRate));
  EXPECT_EQ(Passed(second, kSessionRate + 2), static_cast<int>(kSessionRate));
}

TEST_F(GateRateTest, ACallerWithoutATenantHasASmallRatePerConnection) {
  EXPECT_EQ(Passed(ConnectAs(kNobodyUid), kRateWithoutTenant + 1), kRateWithoutTenant);
  EXPECT_EQ(Passed(ConnectAs(kNobodyUid), kRateWithoutTenant), kRateWithoutTenant);
}

TEST_F(GateRateTest, OperatorsAndPluginsAreNotCounted) {
  for (const core::Role role : {core::Role::kOperator, core::Role::kDevicePlugin}) {
    for (const uint32_t uid : {kTenantUid, kNobodyUid}) {
      EXPECT_EQ(Passed(Connect(1, role, uid), 2 * kRateWithoutTenant, core::Row("AdminService.GetStatus")),
                2 * kRateWithoutTenant);
    }
  }
}

TEST_F(GateRateTest, CallsThatAreRefusedAnywayAreCounted) {
  const auto connection = ConnectAs(kTenantUid);
  for (const core::Operation& row : {core::Row("AdminService.GetStatus"), core::Row("MemoryService.CreateMr")}) {
    Passed(connection, kTenantRate + 1, row);
    EXPECT_THAT(observer_.decisions().back().status, FailsWith(ErrorReason::RATE_LIMITED)) << row.name;
    world_.clock.Advance(std::chrono::seconds(10));
  }
}

TEST_F(GateRateTest, ASessionCanAlwaysBeClosed) {
  const auto connection = ConnectAs(kTenantUid);
  const auto session = connection->OpenSession("", "");
  ASSERT_TRUE(session.ok());
  Exhaust(connection);
  EXPECT_EQ(Passed(connection, 5, core::Row("SessionService.CloseSession")), 5);
  world_.End(*session);
  EXPECT_EQ(Try(connection, core::Row("SessionService.CloseSession")), absl::StatusCode::kResourceExhausted)
      << "without one it is a call like any other";
}

TEST_F(GateRateTest, TheRefusalComesLate) {
  const auto connection = ConnectAs(kTenantUid);
  Exhaust(connection);
  const auto refused = Run(connection, Ended(core::Row("AdapterService.ListAdapters")));
  EXPECT_EQ(refused->times(), 0);
  EXPECT_EQ(refused->delay(), std::chrono::milliseconds(1000 / kTenantRate));
  EXPECT_EQ(refused->Code(), absl::StatusCode::kResourceExhausted);
}

// A rate of a million calls per second needs practically no wait.
TEST_F(GateRateTest, EvenAShortWaitIsTenMilliseconds) {
  constexpr uint64_t kRate = 1'000'000;
  core::Policy policy;
  policy.tenants.push_back(RuleFor("fast", kTenantUid, {.tenant_rate = {.per_second = kRate, .burst = 1}}));
  world_.tenants.SetPolicy(policy);
  const auto connection = ConnectAs(kTenantUid);
  EXPECT_EQ(Passed(connection, 1), 1);
  const auto refused = Run(connection, Ended(core::Row("AdapterService.ListAdapters")));
  EXPECT_EQ(refused->delay(), std::chrono::milliseconds(10));
  EXPECT_EQ(refused->Code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(GateRateTest, ACallAboveTheRateIsNotRead) {
  const auto connection = ConnectAs(kTenantUid);
  Exhaust(connection);
  const auto refused = std::make_shared<FakeEnd>();
  const Gate::Begun begun = Gate(services_, connection).Begin(Ended(core::Row("AdapterService.ListAdapters")), refused);
  EXPECT_EQ(begun.admitted, nullptr);
  EXPECT_EQ(refused->Code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(GateRateTest, ACancelledCallIsReleasedAtOnce) {
  const auto connection = ConnectAs(kTenantUid);
  Exhaust(connection);
  const size_t decided = observer_.decisions().size();
  std::shared_ptr<Call> waiting;
  const auto refused = Run(connection, Ended(core::Row("AdapterService.ListAdapters")), nullptr, &waiting);
  waiting->Cancel();
  EXPECT_EQ(refused->times(), 1);
  EXPECT_EQ(refused->Code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(refused->times(), 1) << "a call is answered once";
  EXPECT_EQ(observer_.rpcs().back().code, absl::StatusCode::kCancelled);
  EXPECT_EQ(observer_.decisions().size(), decided);
}

}  // namespace
}  // namespace rnicd::gate
