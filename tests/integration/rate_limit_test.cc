// Calls that come too often: refused with their figures, answered late, and nobody else's trouble. What counts against
// whose rate: daemon/gate/gate_rate_test.cc.
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

#include "tests/support/admin_client.h"
#include "tests/support/calls/expect.h"
#include "tests/support/process/child_client.h"
#include "tests/support/test_session.h"

namespace rnicd::test {
namespace {

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

// A policy in which this process is one tenant, which may make so many calls in a second, and all others are another.
std::string PolicyForUs(uint64_t calls) {
  return "tenant { name: \"us\" match { uid: " + std::to_string(geteuid()) +
         " } limits { requests_per_second: " + std::to_string(calls) +
         " } }\ntenant { name: \"others\" sharing: SHARING_EACH_UID }\ndefault_tenant: \"others\"\n";
}

// The wait for the answer is the time after which a call would pass.
TEST_F(RateLimits, ARefusalTellsTheRateAndComesNoSoonerThanTheNextCallPasses) {
  ASSERT_NO_FATAL_FAILURE(StartWith(PolicyForUs(2)));
  RawClient client(daemon().rpc_socket());
  for (int round = 0; round < 3; ++round) {
    CallOutcome refused;
    ASSERT_TRUE(Eventually([&] { return !(refused = client.Call(&AdapterStub::ListAdapters, {})).ok(); }));
    ExpectRefused(refused, ErrorReason::RATE_LIMITED);
    EXPECT_EQ(refused.detail.limit(), 2u);
    EXPECT_EQ(refused.detail.used(), 2u);
    EXPECT_EQ(refused.detail.requested(), 1u);
    ExpectOk(client.Call(&AdapterStub::ListAdapters, {}));
  }
}

// The half of property 9 that is no benchmark: not one call of another user is refused.
TEST_F(RateLimits, Property09AFloodIsRefusedAndNobodyElseIs) {
  ASSERT_NO_FATAL_FAILURE(StartWith(PolicyForUs(20)));
  const auto other = TwoUids() ? ChildClient::Start(daemon(), OtherUid()) : nullptr;
  std::atomic<bool> over = false;
  std::atomic<uint64_t> refused = 0;
  std::vector<std::thread> flood;
  for (int thread = 0; thread < 4; ++thread) {
    flood.emplace_back([&] {
      RawClient client(daemon().rpc_socket());
      while (!over.load()) {
        refused += client.Call(&AdapterStub::ListAdapters, {}).ok() ? 0 : 1;
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
}

// A refusal of one call a second waits a second; its client does not.
TEST_F(RateLimits, AClientThatDoesNotWaitLeavesNothingBehind) {
  ASSERT_NO_FATAL_FAILURE(StartWith(PolicyForUs(1)));
  RawClient client(daemon().rpc_socket());
  EXPECT_TRUE(Eventually([&] {
    return client.Call(&AdapterStub::ListAdapters, {}, std::chrono::milliseconds(50)).code ==
           grpc::StatusCode::DEADLINE_EXCEEDED;
  }));
  // A channel that goes right after such a call leaves its socket open until gRPC looks at it again, seconds later.
  EXPECT_TRUE(Eventually([&] { return client.Call(&AdapterStub::ListAdapters, {}).ok(); })) << "it may still call";
}

TEST_F(RateLimits, RefusalsThatWaitDoNotHoldTheEndUp) {
  ASSERT_NO_FATAL_FAILURE(StartWith(PolicyForUs(1)));
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
  const absl::Status stopped = daemon().Stop();
  EXPECT_TRUE(stopped.ok()) << stopped;
  daemon().KillHard();  // So that the clients end, whatever happened.
  for (std::thread& client : clients) {
    client.join();
  }
  daemon_.reset();
}

}  // namespace
}  // namespace rnicd::test
