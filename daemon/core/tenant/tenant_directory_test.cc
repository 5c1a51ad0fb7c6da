#include "daemon/core/tenant/tenant_directory.h"

#include <thread>

#include "daemon/core/session/race_fixture_test.h"

namespace rnicd::core {
namespace {

using std::chrono::seconds;

constexpr char kOtherPod[] = "0123abcd-0123-4567-89ab-0123456789ac";

Caller OfUid(uint32_t uid, uint32_t gid = 1) {
  Caller caller = CallerNumbered(uid, uid);
  caller.gid = gid;
  return caller;
}
Caller OfPod(const std::string& pod_uid, uint32_t uid = 1000) {
  Caller caller = OfUid(uid);
  caller.container.pod_uid = pod_uid;
  return caller;
}

TenantRule RuleOf(const std::string& name, std::vector<Matcher> matches, Sharing sharing = Sharing::kOne) {
  return {.name = name, .matches = std::move(matches), .sharing = sharing, .limits = {}};
}

Policy PolicyOf(std::vector<TenantRule> rules, const std::string& default_tenant = "") {
  return {.tenants = std::move(rules), .default_tenant = default_tenant, .roles = {}};
}

class TenantDirectoryTest : public ::testing::Test {
 protected:
  TenantDirectory DirectoryOf(Policy policy) { return TenantDirectory(std::move(policy), node_, random_, clock_); }
  // The name, or the reason of the refusal.
  static std::string NameOf(TenantDirectory& directory, const Caller& caller, std::string_view grant = {}) {
    const auto tenant = directory.TenantOf(caller, grant);
    return tenant.ok() ? (*tenant)->name() : std::string(RowOf(ErrorInfoOf(tenant.status()).reason).name);
  }
  static std::vector<std::string> Names(const TenantDirectory& directory) {
    std::vector<std::string> names;
    for (const auto& tenant : directory.Tenants()) {
      names.push_back(tenant->name());
    }
    return names;
  }

  KernelRandom random_;
  ManualClock clock_;
  std::shared_ptr<Ledger> node_ = std::make_shared<Ledger>(Limits{}, nullptr);
};

using Strings = std::vector<std::string>;

TEST_F(TenantDirectoryTest, TheFirstRuleThatMatchesCounts) {
  TenantDirectory directory = DirectoryOf(
      PolicyOf({RuleOf("one", {{.uid = 1}}), RuleOf("group", {{.gid = 7}}), RuleOf("two", {{.uid = 2}, {.uid = 3}})}));
  EXPECT_EQ(NameOf(directory, OfUid(1, 7)), "one");
  EXPECT_EQ(NameOf(directory, OfUid(2, 7)), "group");
  EXPECT_EQ(NameOf(directory, OfUid(2)), "two");
  EXPECT_EQ(NameOf(directory, OfUid(3)), "two") << "any of a rule's conditions will do";
}

TEST_F(TenantDirectoryTest, ACallerWithoutAMatchGetsTheDefaultTenantOrIsRefused) {
  const std::vector<TenantRule> rules = {RuleOf("guests", {}), RuleOf("one", {{.uid = 1}})};
  TenantDirectory open = DirectoryOf(PolicyOf(rules, "guests"));
  EXPECT_EQ(NameOf(open, OfUid(2)), "guests");
  EXPECT_EQ(NameOf(open, OfUid(1)), "one");
  TenantDirectory closed = DirectoryOf(PolicyOf(rules));
  EXPECT_EQ(NameOf(closed, OfUid(2)), "TENANT_REFUSED");
  EXPECT_EQ(NameOf(closed, OfUid(0)), "TENANT_REFUSED") << "root has no special rights here";
  EXPECT_EQ(NameOf(closed, OfUid(1)), "one");
  EXPECT_EQ(Names(closed), Strings{"one"}) << "a refused caller leaves nothing behind";
  TenantDirectory empty = DirectoryOf({});
  EXPECT_EQ(NameOf(empty, OfUid(1)), "TENANT_REFUSED");
  TenantDirectory misnamed = DirectoryOf(PolicyOf(rules, "nobody"));
  EXPECT_EQ(NameOf(misnamed, OfUid(2)), "TENANT_REFUSED");
}

TEST_F(TenantDirectoryTest, ARuleSharesAsItSays) {
  TenantDirectory directory =
      DirectoryOf(PolicyOf({RuleOf("one", {{.gid = 1}}), RuleOf("uid", {{.gid = 2}}, Sharing::kEachUid),
                            RuleOf("pod", {{.gid = 3}}, Sharing::kEachPod)}));
  EXPECT_EQ(directory.TenantOf(OfUid(10, 1), "").value(), directory.TenantOf(OfUid(11, 1), "").value());
  EXPECT_EQ(directory.TenantOf(OfUid(10, 2), "").value(), directory.TenantOf(OfUid(10, 2), "").value());
  EXPECT_EQ(NameOf(directory, OfUid(10, 2)), "uid/uid=10");
  EXPECT_EQ(NameOf(directory, OfUid(11, 2)), "uid/uid=11");
  Caller in_pod = OfPod(kPod, 10);
  in_pod.gid = 3;
  EXPECT_EQ(NameOf(directory, in_pod), "pod/pod=" + std::string(kPod));
  in_pod.uid = 11;
  EXPECT_EQ(NameOf(directory, in_pod), "pod/pod=" + std::string(kPod)) << "whatever its uid is";
  in_pod.container.pod_uid = kOtherPod;
  EXPECT_EQ(NameOf(directory, in_pod), "pod/pod=" + std::string(kOtherPod));
  EXPECT_EQ(NameOf(directory, OfUid(10, 3)), "pod/uid=10") << "outside of pods each uid";
}

TEST_F(TenantDirectoryTest, OnWindowsEachUserIsATenantByItsSid) {
  TenantDirectory directory = DirectoryOf(OneTenantForEachUid({}));
  Caller caller = OfUid(kNoUser);
  caller.sid = "S-1-5-21-1-2-3-1001";
  EXPECT_EQ(NameOf(directory, caller), "uid/sid=S-1-5-21-1-2-3-1001");
}

TEST_F(TenantDirectoryTest, AUidInEachPodAndContainerIsATenantOfItsOwn) {
  TenantDirectory directory = DirectoryOf(OneTenantForEachUid({}));
  const auto inside = [](const std::string& pod_uid, const std::string& id, uint32_t uid) {
    Caller caller = OfUid(uid);
    caller.container = {.pod_uid = pod_uid, .id = id};
    return caller;
  };
  EXPECT_EQ(NameOf(directory, OfUid(10)), "uid/uid=10");
  EXPECT_EQ(NameOf(directory, inside("", "c0ffee", 10)), "uid/uid=10/container=c0ffee");
  EXPECT_EQ(NameOf(directory, inside("", "decade", 10)), "uid/uid=10/container=decade");
  EXPECT_EQ(NameOf(directory, inside("", "c0ffee", 11)), "uid/uid=11/container=c0ffee");
  EXPECT_EQ(NameOf(directory, inside(kPod, "c0ffee", 10)), "uid/uid=10/pod=" + std::string(kPod));
  EXPECT_EQ(NameOf(directory, inside(kPod, "", 10)), "uid/uid=10/pod=" + std::string(kPod));
  EXPECT_EQ(NameOf(directory, inside(kOtherPod, "c0ffee", 10)), "uid/uid=10/pod=" + std::string(kOtherPod));
}

TEST_F(TenantDirectoryTest, ARestartedContainerOfAPodGetsNoFurtherLimits) {
  TenantDirectory directory = DirectoryOf(OneTenantForEachUid({}));
  Caller first = OfPod(kPod, 10);
  first.container.id = "c0ffee";
  Caller second = first;
  second.container.id = "decade";
  EXPECT_EQ(directory.TenantOf(first, "").value(), directory.TenantOf(second, "").value());
}

TEST_F(TenantDirectoryTest, RulesOnLabelsHoldForPodsThatAreKnown) {
  TenantDirectory directory =
      DirectoryOf(PolicyOf({RuleOf("gold", {{.pod_namespace = "storage", .pod_labels = {{"tier", "gold"}}}}),
                            RuleOf("by-uid", {{.pod_uid = kOtherPod}}), RuleOf("guests", {})},
                           "guests"));
  const PodFacts gold{.uid = kPod, .namespace_name = "storage", .name = "a", .labels = {{"tier", "gold"}}};
  EXPECT_EQ(NameOf(directory, OfPod(kPod)), "guests");
  directory.SetPods({gold});
  EXPECT_EQ(NameOf(directory, OfPod(kPod)), "gold");
  EXPECT_EQ(NameOf(directory, OfPod(kOtherPod)), "by-uid") << "the kernel alone knows that";
  EXPECT_EQ(NameOf(directory, OfUid(1)), "guests");
  ASSERT_EQ(directory.Pods().size(), 1u);
  EXPECT_EQ(directory.Pods().front().uid, kPod);
  EXPECT_EQ(directory.Pods().front().labels, gold.labels);
  const auto before = directory.TenantOf(OfPod(kPod), "");
  PodFacts silver = gold;
  silver.labels["tier"] = "silver";
  directory.SetPods({silver});
  EXPECT_EQ(NameOf(directory, OfPod(kPod)), "guests");
  EXPECT_EQ((*before)->name(), "gold") << "a connected caller keeps its tenant";
  directory.SetPods({});
  EXPECT_TRUE(directory.Pods().empty());
  EXPECT_EQ(NameOf(directory, OfPod(kPod)), "guests");
}

TEST_F(TenantDirectoryTest, TenantsAreDistinctAndCountForTheNode) {
  TenantDirectory directory = DirectoryOf(OneTenantForEachUid({}));
  const auto first = directory.TenantOf(OfUid(1), "");
  const auto second = directory.TenantOf(OfUid(2), "");
  const auto grant = directory.CreateGrant({.name = "g"});
  const auto third = directory.TenantOf(OfUid(1), grant->secret);
  EXPECT_NE((*first)->number(), (*second)->number());
  EXPECT_NE((*first)->number(), (*third)->number());
  EXPECT_NE((*second)->number(), (*third)->number());
  for (const auto& tenant : {*first, *second, *third}) {
    EXPECT_NE(tenant->number(), 0u) << "0 is for work without an owner";
    ASSERT_TRUE(tenant->ledger()->Take(Resource::kRegions, 5).ok());
  }
  EXPECT_EQ(node_->used(Resource::kRegions), 15u);
}

TenantRule Limited(const std::string& name, uint64_t sessions, Rate rate = {}, uint64_t regions = 0) {
  TenantRule rule = RuleOf(name, {}, Sharing::kEachUid);
  rule.limits.tenant[Resource::kSessions] = sessions;
  rule.limits.session[Resource::kRegions] = regions;
  rule.limits.tenant_rate = rate;
  return rule;
}

TEST_F(TenantDirectoryTest, AChangedPolicyChangesTheLimitsOfTenantsThatAreThere) {
  TenantDirectory directory = DirectoryOf(PolicyOf({Limited("g", 3, {.per_second = 5}, 7)}, "g"));
  const auto tenant = directory.TenantOf(OfUid(1), "");
  ASSERT_TRUE((*tenant)->ledger()->Take(Resource::kSessions, 3).ok());
  directory.SetPolicy(PolicyOf({Limited("g", 4, {.per_second = 50}, 8)}, "g"));
  EXPECT_EQ(directory.TenantOf(OfUid(1), "").value(), *tenant);
  EXPECT_TRUE((*tenant)->ledger()->Take(Resource::kSessions, 1).ok());
  EXPECT_EQ((*tenant)->rate().per_second(), 50u);
  EXPECT_EQ((*tenant)->limits().session[Resource::kRegions], 8u);
  directory.SetPolicy(PolicyOf({Limited("g", 2)}, "g"));
  EXPECT_EQ((*tenant)->ledger()->used(Resource::kSessions), 4u) << "what is held stays";
  (*tenant)->ledger()->Give(Resource::kSessions, 2);
  EXPECT_FALSE((*tenant)->ledger()->Take(Resource::kSessions, 1).ok());
  EXPECT_EQ((*tenant)->rate().per_second(), 0u);
}

TEST_F(TenantDirectoryTest, AChangedPolicyChangesWhomATenantReachesAtOnce) {
  const IpAddress peer = *IpAddress::FromText("10.98.0.1");
  TenantRule rule = Limited("g", 3);
  TenantDirectory directory = DirectoryOf(PolicyOf({rule}, "g"));
  const std::shared_ptr<Tenant> tenant = *directory.TenantOf(OfUid(1), "");
  const std::shared_ptr<const ConnectionRules> before = tenant->connections();
  EXPECT_FALSE(before->MayReach(peer));
  rule.limits.connections.connect = {{.prefix = *IpPrefix::FromText("10.98.0.0/16")}};
  directory.SetPolicy(PolicyOf({rule}, "g"));
  EXPECT_TRUE(tenant->connections()->MayReach(peer));
  EXPECT_FALSE(before->MayReach(peer)) << "a decision under way has the rules that it began with";
  directory.SetPolicy(PolicyOf({Limited("g", 3)}, "g"));
  EXPECT_FALSE(tenant->connections()->MayReach(peer));
}

TEST_F(TenantDirectoryTest, ATenantWhoseRuleIsGoneKeepsItsLimitsAndTakesNobodyIn) {
  TenantDirectory directory = DirectoryOf(PolicyOf({Limited("g", 3)}, "g"));
  const auto tenant = directory.TenantOf(OfUid(1), "");
  directory.SetPolicy(PolicyOf({Limited("h", 9)}));
  EXPECT_EQ((*tenant)->ledger()->limit(Resource::kSessions), 3u);
  EXPECT_EQ(NameOf(directory, OfUid(1)), "TENANT_REFUSED");
  EXPECT_EQ(Names(directory), Strings{"g/uid=1"});
  directory.SetPolicy(PolicyOf({Limited("g", 5)}, "g"));
  EXPECT_EQ(directory.TenantOf(OfUid(1), "").value(), *tenant);
  EXPECT_EQ((*tenant)->ledger()->limit(Resource::kSessions), 5u);
}

TEST_F(TenantDirectoryTest, TheLimitsOfAGrantAreNotThePolicys) {
  TenantDirectory directory = DirectoryOf(PolicyOf({Limited("g", 3)}, "g"));
  GrantTerms terms{.name = "g"};
  terms.limits.tenant[Resource::kSessions] = 8;
  const auto issued = directory.CreateGrant(terms);
  const auto tenant = directory.TenantOf(OfUid(1), issued->secret);
  directory.SetPolicy(PolicyOf({Limited("", 1), Limited("grant/g", 1), Limited("g", 1)}, "g"));
  EXPECT_EQ((*tenant)->ledger()->limit(Resource::kSessions), 8u);
}

TEST_F(TenantDirectoryTest, SweepForgetsUnusedTenants) {
  TenantDirectory directory = DirectoryOf(OneTenantForEachUid({}));
  auto used = directory.TenantOf(OfUid(1), "").value();
  (void)directory.TenantOf(OfUid(2), "");
  EXPECT_EQ(Names(directory), (Strings{"uid/uid=1", "uid/uid=2"}));
  EXPECT_TRUE(directory.Sweep().empty());
  EXPECT_EQ(Names(directory), Strings{"uid/uid=1"});
  EXPECT_EQ(directory.TenantOf(OfUid(1), "").value(), used);
  used.reset();
  directory.Sweep();
  EXPECT_TRUE(Names(directory).empty());
}

TEST_F(TenantDirectoryTest, AFloodIsNotForgottenByGoingAway) {
  TenantDirectory directory = DirectoryOf(PolicyOf({Limited("g", 0, {.per_second = 1, .burst = 10})}, "g"));
  for (int call = 0; call < 10; ++call) {
    EXPECT_FALSE(directory.TenantOf(OfUid(1), "").value()->rate().Take().has_value());
  }
  directory.Sweep();
  EXPECT_TRUE(directory.TenantOf(OfUid(1), "").value()->rate().Take().has_value())
      << "a caller that returns too early gets its old rate limit";
  clock_.Advance(seconds(10));
  directory.Sweep();
  EXPECT_TRUE(Names(directory).empty()) << "a tenant made anew would be as generous";
}

TEST_F(TenantDirectoryTest, ATenantThatStillHoldsSomethingIsNotForgotten) {
  TenantDirectory directory = DirectoryOf(PolicyOf({Limited("g", 3)}, "g"));
  // As for a request that the card has not completed, though its session has ended.
  auto charge = Charge::Take(directory.TenantOf(OfUid(1), "").value()->ledger(), Resource::kPinnedBytes, kPage);
  ASSERT_TRUE(charge.ok());
  directory.Sweep();
  EXPECT_EQ(directory.TenantOf(OfUid(1), "").value()->ledger()->used(Resource::kPinnedBytes), kPage)
      << "or coming back would make its limits new";
  charge->Refund();
  directory.Sweep();
  EXPECT_TRUE(Names(directory).empty());
}

TEST_F(TenantDirectoryTest, AGrantAdmitsCallersThatThePolicyRefuses) {
  TenantDirectory directory = DirectoryOf(PolicyOf({RuleOf("one", {{.uid = 1}})}));
  const auto issued = directory.CreateGrant({.name = "pod-7"});
  ASSERT_TRUE(issued.ok());
  EXPECT_EQ(NameOf(directory, OfUid(2), issued->secret), "grant/pod-7");
  EXPECT_EQ(NameOf(directory, OfUid(1), issued->secret), "grant/pod-7") << "a grant comes before the policy";
  EXPECT_EQ(NameOf(directory, OfUid(1), "x"), "GRANT_REFUSED") << "and a wrong one is not overlooked";
  EXPECT_EQ(Names(directory), Strings{"grant/pod-7"});
  EXPECT_EQ(directory.Grants().size(), 1u);
  EXPECT_TRUE(directory.RevokeGrant(issued->id).ok());
  EXPECT_EQ(NameOf(directory, OfUid(1), issued->secret), "GRANT_REFUSED");
  EXPECT_TRUE(Names(directory).empty());
}

Caller Through(const absl::StatusOr<IssuedGrant>& grant, Caller caller) {
  caller.door = grant->tenant;
  return caller;
}

TEST_F(TenantDirectoryTest, ASecretAtADoorIsRefused) {
  TenantDirectory directory = DirectoryOf(OneTenantForEachUid({}));
  const auto door = directory.CreateGrant({.name = "a", .door = true});
  const auto secret = directory.CreateGrant({.name = "b"});
  EXPECT_EQ(NameOf(directory, Through(door, OfUid(1))), "grant/a");
  EXPECT_THAT(directory.TenantOf(Through(door, OfUid(1)), secret->secret).status(),
              FailsAt(ErrorReason::GRANT_REFUSED, "grant"));
}

TEST_F(TenantDirectoryTest, ThePolicySaysWhoMayComeThroughDoors) {
  Policy policy = OneTenantForEachUid({});
  policy.doors = {{.uid = 1}, {.pod_namespace = "ml"}};
  TenantDirectory directory = DirectoryOf(policy);
  directory.SetPods({{.uid = kPod, .namespace_name = "ml", .name = "train-0"}});
  const auto door = directory.CreateGrant({.name = "a", .door = true});
  EXPECT_EQ(NameOf(directory, Through(door, OfUid(1))), "grant/a");
  EXPECT_EQ(NameOf(directory, Through(door, OfPod(kPod))), "grant/a");
  EXPECT_EQ(NameOf(directory, Through(door, OfUid(2))), "TENANT_REFUSED");
  directory.SetPolicy(OneTenantForEachUid({}));
  EXPECT_EQ(NameOf(directory, Through(door, OfUid(2))), "grant/a");
}

TEST_F(TenantDirectoryTest, SweepAnswersTheGrantsThatAreOver) {
  TenantDirectory directory = DirectoryOf({});
  ASSERT_TRUE(directory.CreateGrant({.name = "a", .lifetime = seconds(1)}).ok());
  ASSERT_TRUE(directory.CreateGrant({.name = "b"}).ok());
  EXPECT_TRUE(directory.Sweep().empty());
  clock_.Advance(seconds(1));
  const auto over = directory.Sweep();
  ASSERT_EQ(over.size(), 1u);
  EXPECT_EQ(over.front()->name(), "grant/a");
  EXPECT_TRUE(over.front()->closed());
  EXPECT_EQ(Names(directory), Strings{"grant/b"});
}

// Where the kernel shows no pods, the pod's own processes would be refused too.
TEST_F(TenantDirectoryTest, NoGrantIsBoundBeforeAProcessInAPodWasSeen) {
  TenantDirectory directory = DirectoryOf({});
  const auto first = directory.CreateGrant({.name = "a"});
  const auto second = directory.CreateGrant({.name = "b"});
  EXPECT_EQ((*directory.BindGrant(first->id, kPod, OfUid(0)))->pod_uid(), "");
  EXPECT_EQ(NameOf(directory, OfUid(1), first->secret), "grant/a");
  EXPECT_EQ(NameOf(directory, OfPod(kOtherPod)), "TENANT_REFUSED") << "it was seen nevertheless";
  EXPECT_EQ((*directory.BindGrant(first->id, kPod, OfUid(0)))->pod_uid(), kPod);
  EXPECT_EQ(NameOf(directory, OfUid(1), first->secret), "GRANT_REFUSED");
  EXPECT_EQ(NameOf(directory, OfPod(kPod), first->secret), "grant/a");
  EXPECT_EQ(NameOf(directory, OfUid(1), second->secret), "grant/b");
}

TEST_F(TenantDirectoryTest, ACallerThatIsInAPodMayBindAtOnce) {
  TenantDirectory directory = DirectoryOf({});
  const auto issued = directory.CreateGrant({.name = "a"});
  EXPECT_EQ((*directory.BindGrant(issued->id, kPod, OfPod(kOtherPod, 0)))->pod_uid(), kPod);
}

TEST_F(TenantDirectoryTest, WithoutRolesTheTrustedAreOperators) {
  const TenantDirectory directory = DirectoryOf({});
  EXPECT_EQ(directory.RoleOf(OfUid(1000), /*is_trusted=*/true), Role::kOperator);
  EXPECT_EQ(directory.RoleOf(OfUid(0), /*is_trusted=*/false), std::nullopt);
}

TEST_F(TenantDirectoryTest, TheFirstRoleThatMatchesCounts) {
  Policy policy;
  policy.roles = {{.match = {.gid = 7}, .role = Role::kDevicePlugin},
                  {.match = {.uid = 5}, .role = Role::kOperator},
                  {.match = {.pod_labels = {{"app", "plugin"}}}, .role = Role::kDevicePlugin}};
  TenantDirectory directory = DirectoryOf(policy);
  EXPECT_EQ(directory.RoleOf(OfUid(5, 7), /*is_trusted=*/false), Role::kDevicePlugin);
  EXPECT_EQ(directory.RoleOf(OfUid(5), /*is_trusted=*/false), Role::kOperator);
  EXPECT_EQ(directory.RoleOf(OfUid(0, 7), /*is_trusted=*/true), Role::kDevicePlugin) << "a rule comes before trust";
  EXPECT_EQ(directory.RoleOf(OfUid(0), /*is_trusted=*/true), Role::kOperator);
  EXPECT_EQ(directory.RoleOf(OfPod(kPod), /*is_trusted=*/false), std::nullopt);
  directory.SetPods({{.uid = kPod, .namespace_name = "kube-system", .name = "p", .labels = {{"app", "plugin"}}}});
  EXPECT_EQ(directory.RoleOf(OfPod(kPod), /*is_trusted=*/false), Role::kDevicePlugin);
}

// Callers come and go while the policy, the pods and the grants change and the directory is swept. A tenant in use is
// the same object for every caller, so its limit holds.
TEST_F(TenantDirectoryTest, ATenantInUseIsNeverMadeTwice) {
  constexpr int kThreads = 8;
  constexpr int kSteps = 400;
  constexpr int kMost = 3;
  TenantDirectory directory = DirectoryOf(PolicyOf({Limited("g", kMost)}, "g"));
  std::atomic<int> inside[2] = {0, 0};
  std::atomic<int> entered{0};
  const auto run = [&](uint64_t seed) {
    Random random(seed);
    for (int step = 0; step < kSteps; ++step) {
      const uint64_t uid = random() % 2;
      switch (random() % 8) {
        case 0:
          directory.SetPolicy(PolicyOf({Limited("other", 1), Limited("g", kMost)}, "g"));
          break;
        case 1:
          directory.SetPods({{.uid = kPod, .namespace_name = "n", .name = "p", .labels = {}}});
          (void)directory.Tenants();
          break;
        case 2:
          (void)directory.CreateGrant({.name = std::to_string(random() % 4), .lifetime = seconds(1)});
          clock_.Advance(std::chrono::milliseconds(300));
          break;
        default: {
          (void)directory.Sweep();
          const auto tenant = directory.TenantOf(OfUid(static_cast<uint32_t>(uid)), "");
          ASSERT_TRUE(tenant.ok());
          const auto charge = Charge::Take((*tenant)->ledger(), Resource::kSessions, 1);
          if (charge.ok()) {
            EXPECT_LE(++inside[uid], kMost);
            ++entered;
            std::this_thread::yield();
            --inside[uid];
          }
          break;
        }
      }
    }
  };
  const uint64_t seed = Seed();
  std::cout << "RNICD_SEED=" << seed << '\n' << std::flush;
  std::vector<std::thread> threads;
  for (uint64_t index = 0; index < kThreads; ++index) {
    threads.emplace_back(run, seed * kThreads + index);
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_GT(entered, 100);
  EXPECT_EQ(node_->used(Resource::kSessions), 0u);
}

}  // namespace
}  // namespace rnicd::core
