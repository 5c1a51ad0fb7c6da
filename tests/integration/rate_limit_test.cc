// Calls that come too often: refused with their figures, answered late, and nobody else's trouble.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/mutex.h"
#include "tests/support/admin_client.h"
#include "tests/support/child_client.h"
#include "tests/support/expect.h"
#include "tests/support/test_session.h"

namespace rnicd::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr uint64_t kWithoutTenant = 50;

// A daemon of the test's own, with a policy.
class RateLimits : public testing::Test {
 protected:
  // Measures the idle daemon before the policy limits this process, too.
  void StartWith(const std::string& policy) {
    WritePolicy("tenant { name: \"all\" } default_tenant: \"all\"\n");
    auto started = DaemonProcess::Start({.flags = {"--policy_file=" + path()}, .directory = directory_});
    ASSERT_TRUE(started.ok()) << started.status();
    daemon_ = *std::move(started);
    idle_ = MeasureIdle(*daemon_);
    WritePolicy(policy);
    RawClient admin(daemon_->admin_socket());
    ASSERT_TRUE(ExpectOk(admin.Call(&AdminStub::ReloadPolicy, {})));
  }
  // Clients of the test are gone by now, because they were its local variables.
  void TearDown() override {
    if (daemon_ != nullptr) {
      ExpectNothingHeld(*daemon_, idle_);
      const absl::Status stopped = daemon_->Stop();
      EXPECT_TRUE(stopped.ok()) << stopped;
    }
  }
  DaemonProcess& daemon() { return *daemon_; }

  std::string path() const { return directory_->path() + "/policy"; }
  void WritePolicy(const std::string& policy) const {
    {
      std::ofstream(path()) << policy;
    }
    std::filesystem::permissions(path(), std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  }

  const std::shared_ptr<TempDir> directory_ = std::make_shared<TempDir>();
  std::unique_ptr<DaemonProcess> daemon_;
  IdleState idle_;
};

// A policy in which this process is one tenant, with limits for it and for each of its sessions, and all others are
// another.
std::string PolicyForUs(const std::string& limits, const std::string& session_limits = "") {
  return "tenant { name: \"us\" match { uid: " + std::to_string(geteuid()) + " } limits { " + limits +
         " } session_limits { " + session_limits + " } }\ntenant { name: \"others\" sharing: SHARING_EACH_UID }\n" +
         "default_tenant: \"others\"\n";
}

std::string PerSecond(uint64_t calls) { return "requests_per_second: " + std::to_string(calls); }

// Calls side by side until one is refused, and answers the first such; none is a test failure. Side by side, so that a
// slow machine can call too often as well.
struct Refusal {
  uint64_t passed = 0;
  CallOutcome outcome;
  steady_clock::duration duration{};
};
template <typename Call>
Refusal CallUntilRefused(Call call) {
  Mutex mutex;
  Refusal refusal;
  const auto deadline = steady_clock::now() + kTimeout;
  const auto call_on = [&] {
    for (bool over = false; !over;) {
      const auto begin = steady_clock::now();
      const CallOutcome outcome = call();
      MutexLock lock(mutex);
      refusal.passed += outcome.ok() ? 1 : 0;
      if (!outcome.ok() && refusal.outcome.ok()) {
        refusal.outcome = outcome;
        refusal.duration = steady_clock::now() - begin;
      }
      over = !refusal.outcome.ok() || steady_clock::now() > deadline;
    }
  };
  std::vector<std::thread> callers;
  for (int thread = 0; thread < 8; ++thread) {
    callers.emplace_back(call_on);
  }
  for (std::thread& caller : callers) {
    caller.join();
  }
  EXPECT_FALSE(refusal.outcome.ok()) << refusal.passed << " calls and none was refused";
  return refusal;
}

void ExpectRateLimited(const Refusal& refusal, uint64_t per_second, Where where = Where::current()) {
  ExpectRefused(refusal.outcome, ErrorReason::RATE_LIMITED, "", where);
  EXPECT_EQ(refusal.outcome.detail.limit(), per_second);
  EXPECT_EQ(refusal.outcome.detail.used(), per_second);
  EXPECT_EQ(refusal.outcome.detail.requested(), 1u);
  EXPECT_GE(refusal.duration, milliseconds(10)) << "the refusal must come late";
}

// As many calls as one may make in a burst, and as many as time gave since then.
void ExpectKeptTo(uint64_t passed, uint64_t per_second, steady_clock::duration time) {
  EXPECT_GE(passed, per_second);
  const double seconds = std::chrono::duration<double>(time).count();
  EXPECT_LE(static_cast<double>(passed), static_cast<double>(per_second) * (1 + seconds) + 1);
}

// Calls until one is refused: late, with the figures, and not before the rate is used up. So many passed a moment ago.
template <typename Call>
void ExpectLimited(uint64_t per_second, Call call, uint64_t passed_before = 0) {
  const auto begin = steady_clock::now();
  const Refusal refusal = CallUntilRefused(call);
  ExpectRateLimited(refusal, per_second);
  const milliseconds moment(passed_before > 0 ? 100 : 0);
  ExpectKeptTo(passed_before + refusal.passed, per_second, steady_clock::now() - begin + moment);
}

TEST_F(RateLimits, WhoCallsTooOftenIsRefusedLateAndWithTheFigures) {
  ASSERT_NO_FATAL_FAILURE(StartWith(PolicyForUs(PerSecond(10))));
  RawClient client(daemon().rpc_socket());
  ExpectLimited(10, [&] { return client.Call(&AdapterStub::ListAdapters, {}); });
  EXPECT_TRUE(Eventually([&] { return client.Call(&AdapterStub::ListAdapters, {}).ok(); })) << "a pause helps";
}

TEST_F(RateLimits, ConnectionsOfATenantShareItsRate) {
  ASSERT_NO_FATAL_FAILURE(StartWith(PolicyForUs(PerSecond(10))));
  TestSession session(daemon());
  RawClient client(daemon().rpc_socket());
  const auto begin = steady_clock::now();
  // The one without a session uses up what the session needs.
  const Refusal first = CallUntilRefused([&] { return client.Call(&AdapterStub::ListAdapters, {}); });
  const Refusal second = CallUntilRefused([&] { return session.Call(&SessionStub::GetSession, {}); });
  ExpectRateLimited(second, 10);
  ExpectKeptTo(1 + first.passed + second.passed, 10, steady_clock::now() - begin + milliseconds(100));
}

TEST_F(RateLimits, EachSessionHasItsOwnRateWithinItsTenants) {
  ASSERT_NO_FATAL_FAILURE(StartWith(PolicyForUs(PerSecond(1000), PerSecond(10))));
  TestSession first(daemon());
  TestSession second(daemon());
  for (TestSession* const session : {&first, &second}) {
    ExpectLimited(10, [&] { return session->Call(&SessionStub::GetSession, {}); });
  }
  RawClient free(daemon().rpc_socket());
  for (int call = 0; call < 100; ++call) {
    ExpectOk(free.Call(&AdapterStub::ListAdapters, {}));
  }
}

// While others use up whatever time gives the session.
TEST_F(RateLimits, ASessionCanAlwaysBeClosed) {
  ASSERT_NO_FATAL_FAILURE(StartWith(PolicyForUs(PerSecond(2))));
  TestSession session(daemon());
  std::atomic<bool> over = false;
  std::atomic<int> refused = 0;
  std::vector<std::thread> flood;
  for (int thread = 0; thread < 8; ++thread) {
    flood.emplace_back([&] {
      while (!over.load()) {
        refused += session.Call(&SessionStub::GetSession, {}).ok() ? 0 : 1;
      }
    });
  }
  EXPECT_TRUE(Eventually([&] { return refused.load() > 0; }));
  ExpectOk(session.CloseSession());
  over.store(true);
  for (std::thread& thread : flood) {
    thread.join();
  }
}

TEST_F(RateLimits, WhoIsNoTenantMayKnockButNotHammer) {
  ASSERT_NO_FATAL_FAILURE(
      StartWith("tenant { name: \"nobody\" match { uid: " + std::to_string(geteuid() + 1) + " } }\n"));
  RawClient client(daemon().rpc_socket());
  ExpectRefused(client.Call(&SessionStub::OpenSession, {}), ErrorReason::TENANT_REFUSED);
  ExpectLimited(kWithoutTenant, [&] { return client.Call(&AdapterStub::ListAdapters, {}); }, 1);
  RawClient another(daemon().rpc_socket());
  ExpectOk(another.Call(&AdapterStub::ListAdapters, {}));
}

TEST_F(RateLimits, OperatorsAreNotCounted) {
  ASSERT_NO_FATAL_FAILURE(StartWith(PolicyForUs(PerSecond(5))));
  RawClient admin(daemon().admin_socket());
  for (int call = 0; call < 200; ++call) {
    ASSERT_TRUE(ExpectOk(admin.Call(&AdminStub::ListGrants, {})));
  }
}

// The half of property 9 that is no benchmark: not one call of another user is refused.
TEST_F(RateLimits, Property09AFloodIsRefusedAndNobodyElseIs) {
  ASSERT_NO_FATAL_FAILURE(StartWith(PolicyForUs(PerSecond(20))));
  const auto other = TwoUids() ? ChildClient::Start(daemon(), OtherUid()) : nullptr;
  std::atomic<bool> over = false;
  std::atomic<uint64_t> refused = 0;
  std::atomic<uint64_t> passed = 0;
  const auto begin = steady_clock::now();
  std::vector<std::thread> flood;
  for (int thread = 0; thread < 4; ++thread) {
    flood.emplace_back([&] {
      RawClient client(daemon().rpc_socket());
      while (!over.load()) {
        ++(client.Call(&AdapterStub::ListAdapters, {}).ok() ? passed : refused);
      }
    });
  }
  EXPECT_TRUE(Eventually([&] { return refused.load() > 8; }));
  if (other != nullptr) {
    other->MustRun("open other");
    for (int call = 0; call < 100; ++call) {
      other->MustRun("session");
    }
    other->MustRun("close");
  }
  over.store(true);
  for (std::thread& thread : flood) {
    thread.join();
  }
  ExpectKeptTo(passed.load(), 20, steady_clock::now() - begin);
}

// A refusal of one call a second waits a second; its client does not.
TEST_F(RateLimits, AClientThatDoesNotWaitLeavesNothingBehind) {
  ASSERT_NO_FATAL_FAILURE(StartWith(PolicyForUs(PerSecond(1))));
  RawClient client(daemon().rpc_socket());
  EXPECT_TRUE(Eventually([&] {
    return client.Call(&AdapterStub::ListAdapters, {}, milliseconds(50)).code == grpc::StatusCode::DEADLINE_EXCEEDED;
  }));
  // A channel that goes right after such a call leaves its socket open until gRPC looks at it again, seconds later.
  EXPECT_TRUE(Eventually([&] { return client.Call(&AdapterStub::ListAdapters, {}).ok(); })) << "it may still call";
}

TEST_F(RateLimits, RefusalsThatWaitDoNotHoldTheEndUp) {
  ASSERT_NO_FATAL_FAILURE(StartWith(PolicyForUs(PerSecond(1))));
  std::atomic<int> calling = 0;
  std::vector<std::thread> clients;
  for (int thread = 0; thread < 16; ++thread) {
    clients.emplace_back([&] {
      RawClient client(daemon().rpc_socket());
      ++calling;
      while (client.Call(&AdapterStub::ListAdapters, {}).code != grpc::StatusCode::UNAVAILABLE) {
      }
    });
  }
  EXPECT_TRUE(Eventually([&] { return calling.load() == 16; }));
  const auto begin = steady_clock::now();
  const absl::Status stopped = daemon().Stop();
  EXPECT_TRUE(stopped.ok()) << stopped;
  EXPECT_LT(steady_clock::now() - begin, milliseconds(3000) * kSlowness);
  daemon().KillHard();  // So that the clients end, whatever happened.
  for (std::thread& client : clients) {
    client.join();
  }
  daemon_.reset();
}

}  // namespace
}  // namespace rnicd::test
