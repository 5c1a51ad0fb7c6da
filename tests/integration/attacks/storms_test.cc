// Storms of connections: two processes without any privilege connect to a socket of the daemon and leave, as fast as
// they can. Meanwhile every call of others is answered, nobody is kept out, deaths are noticed, and SIGTERM works. How
// long calls of others take then is measured by scripts/bench --noisy.
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/integration/raw_call.h"
#include "tests/support/admin_client.h"
#include "tests/support/calls/expect.h"
#include "tests/support/calls/fd_exchange.h"
#include "tests/support/hostile/attacker.h"
#include "tests/support/process/child_client.h"
#include "tests/support/process/processor_time.h"
#include "tests/support/test_session.h"

namespace rnicd::test {
namespace {

constexpr int kAttackers = 2;
// Connections that one user may have.
constexpr int kStormSize = 64;
// Processor time that each attacker has had when a storm has lasted long enough.
constexpr std::chrono::milliseconds kStormTime{100};
constexpr int kDeaths = 7;

struct StormRow {
  const char* name;
  DaemonSocket socket;
  // Connections that each attacker keeps while it goes on: all that it may have, or none.
  int held;
};

void PrintTo(const StormRow& row, std::ostream* out) { *out << row.name; }

const StormRow kStorms[] = {
    {"OnRpc", DaemonSocket::kRpc, 0},     {"OnRpcAboveTheLimit", DaemonSocket::kRpc, kStormSize},
    {"OnFd", DaemonSocket::kFd, 0},       {"OnFdAboveTheLimit", DaemonSocket::kFd, kStormSize},
    {"OnAdmin", DaemonSocket::kAdmin, 0}, {"OnAdminAboveTheLimit", DaemonSocket::kAdmin, kStormSize},
};

class Storm : public testing::TestWithParam<StormRow> {
 protected:
  void SetUp() override {
    DaemonOptions options;
    if (TwoUids()) {
      options.flags = {"--max_connections_per_uid=" + std::to_string(kStormSize)};
    }
    auto started = DaemonProcess::Start(options);
    ASSERT_TRUE(started.ok()) << started.status();
    daemon_ = *std::move(started);
    idle_ = MeasureIdle(*daemon_);
    // The kernel would refuse the attackers on the operators' socket.
    if (GetParam().socket == DaemonSocket::kAdmin) {
      ASSERT_TRUE(LetEveryoneReachAdmin(*daemon_));
    }
  }
  // The attackers end here, the test's own clients have. An operator who waits for a place in the queue has those
  // before it behind it then; gRPC would not wait.
  void TearDown() override {
    attackers_.clear();
    if (daemon_ != nullptr && daemon_->process().running()) {
      EXPECT_TRUE(NewOperator());
      ExpectNothingHeld(*daemon_, idle_);
    }
  }

  void Begin() {
    for (int index = 0; index < kAttackers; ++index) {
      attackers_.push_back(StartAttacker(*daemon_));
      attackers_.back()->MustRun("become " + std::to_string(WorkloadUid()));
      attackers_.back()->MustRun("storm " + WordsOf(*daemon_, GetParam().socket) + " " +
                                 std::to_string(GetParam().held));
      began_.push_back(ProcessorTimeOf(attackers_.back()->process().pid()));
    }
  }
  // Whether every attacker has had its time.
  bool HasLasted() const {
    for (size_t index = 0; index < attackers_.size(); ++index) {
      if (ProcessorTimeOf(attackers_[index]->process().pid()) < began_[index] + kStormTime) {
        return false;
      }
    }
    return true;
  }
  bool NewClient() const { return CallOnce(daemon_->rpc_socket(), SessionStub::OpenSession.path); }
  bool NewOperator() const { return CallOnce(daemon_->admin_socket(), AdminStub::ListSessions.path); }

  std::unique_ptr<DaemonProcess> daemon_;
  IdleState idle_;
  std::vector<std::unique_ptr<ChildClient>> attackers_;
  std::vector<std::chrono::milliseconds> began_;
};

// Newcomers stand in the queue that the storm fills, as long as the kernel makes it (docs/LIMITS.md).
TEST_P(Storm, LeavesNoCallUnansweredAndKeepsNobodyOut) {
  TestSession session(*daemon_);
  RawClient operators(daemon_->admin_socket());
  ExpectOk(operators.Call(&AdminStub::GetStatus, {}));
  Begin();
  do {
    ASSERT_TRUE(ExpectOk(session.Call(&AdapterStub::ListAdapters, {})));
    const auto status = operators.Call(&AdminStub::GetStatus, {});
    ASSERT_TRUE(ExpectOk(status));
    // The session's and the operator's are of another user.
    EXPECT_TRUE(!TwoUids() || status.response.connections() <= kStormSize + 2) << status.response.connections();
  } while (!HasLasted());
  EXPECT_TRUE(Eventually([&] { return NewClient(); }));
  EXPECT_TRUE(Eventually([&] { return ExchangeFd(daemon_->fd_socket(), FdRequestBytes("", 0)).replied; }));
  EXPECT_TRUE(Eventually([&] { return NewOperator(); }));
}

bool IsListed(RawClient& operators, uint64_t session_id) {
  const auto listed = operators.Call(&AdminStub::ListSessions, {});
  EXPECT_TRUE(ExpectOk(listed));
  const auto& sessions = listed.response.sessions();
  return std::any_of(sessions.begin(), sessions.end(),
                     [&](const v1::SessionInfo& session) { return session.session_id() == session_id; });
}

TEST_P(Storm, HidesNoDeath) {
  RawClient operators(daemon_->admin_socket());
  std::vector<std::unique_ptr<ChildClient>> clients;
  std::vector<uint64_t> sessions;
  for (int index = 0; index < kDeaths; ++index) {
    clients.push_back(ChildClient::Start(*daemon_, OtherUid()));
    ASSERT_NE(clients.back(), nullptr);
    sessions.push_back(clients.back()->MustRun("open").number("session"));
    ASSERT_TRUE(IsListed(operators, sessions.back()));
  }
  Begin();
  for (size_t index = 0; index < clients.size(); ++index) {
    clients[index]->KillHard();
    EXPECT_TRUE(Eventually([&] { return !IsListed(operators, sessions[index]); }));
  }
  EXPECT_TRUE(Eventually([&] { return HasLasted(); }));
}

TEST_P(Storm, DoesNotKeepTheDaemonFromStopping) {
  TestSession session(*daemon_);
  Begin();
  EXPECT_TRUE(Eventually([&] { return HasLasted(); }));
  const absl::Status stopped = daemon_->Stop();
  EXPECT_TRUE(stopped.ok()) << stopped;
}

INSTANTIATE_TEST_SUITE_P(Each, Storm, testing::ValuesIn(kStorms), [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace rnicd::test
