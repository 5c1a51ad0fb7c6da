// Storms of connections: two processes without any privilege connect to a socket of the daemon and leave, as fast as
// they can. Calls of others take no more than twice as long as next to an equal storm on a socket that is not the
// daemon's: the comparison leaves out what the processors cost, which all share.
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/integration/raw_call.h"
#include "tests/support/admin_client.h"
#include "tests/support/attacker.h"
#include "tests/support/child_client.h"
#include "tests/support/expect.h"
#include "tests/support/fd_exchange.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test_session.h"

namespace rnicd::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
// Milliseconds.
using Delays = std::vector<double>;

constexpr int kAttackers = 2;
// Connections that one user may have.
constexpr int kStormSize = 64;
constexpr int kStormRounds = 3;
constexpr milliseconds kCallsPhase{300};
constexpr milliseconds kNewcomersPhase{60};
// A call may take twice as long, and this does not count: the processors' turns are not even.
constexpr double kRatioMax = 2;
constexpr double kFloorMs = 1;
constexpr int kDeaths = 7;
constexpr double kDeathMsMax = 100;

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

// --- times ---

double MillisecondsSince(steady_clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(steady_clock::now() - begin).count();
}

double Quantile(Delays times, double share) {
  if (times.empty()) {
    return 0;
  }
  const auto at = times.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(times.size() - 1));
  std::nth_element(times.begin(), at, times.end());
  return *at;
}

double P99(const Delays& times) { return Quantile(times, 0.99); }
double Median(const Delays& times) { return Quantile(times, 0.5); }

// Calls made one after the other for a while.
struct Calls {
  // One for each call that was answered.
  Delays times;
  size_t refused = 0;
};

// At least one, however long it takes.
Calls Measure(const std::function<bool()>& call, milliseconds duration) {
  Calls calls;
  const auto end = steady_clock::now() + duration * kSlowness;
  do {
    const auto begin = steady_clock::now();
    if (call()) {
      calls.times.push_back(MillisecondsSince(begin));
    } else {
      ++calls.refused;
    }
  } while (steady_clock::now() < end);
  return calls;
}

// The same calls elsewhere and in the storm, in rounds.
class Comparison {
 public:
  void Add(const Calls& elsewhere, const Calls& storm) {
    elsewhere_p99_.push_back(P99(elsewhere.times));
    storm_p99_.push_back(P99(storm.times));
    ratios_.push_back(P99(storm.times) / (P99(elsewhere.times) + kFloorMs));
    served_ += storm.times.size();
    refused_ += storm.refused;
  }

  double ratio() const { return Median(ratios_); }
  // In the storm.
  size_t served() const { return served_; }
  void Print(const char* row, const char* calls) const {
    std::printf(
        "%s, %s: p99 %.2f ms elsewhere, %.2f ms in the storm, ratio %.2f; in the storm %zu served, %zu refused\n", row,
        calls, Median(elsewhere_p99_), Median(storm_p99_), ratio(), served_, refused_);
  }

 private:
  Delays elsewhere_p99_;
  Delays storm_p99_;
  Delays ratios_;
  size_t served_ = 0;
  size_t refused_ = 0;
};

struct CallKind {
  const char* name;
  milliseconds duration;
  // False when the daemon refuses it.
  std::function<bool()> call;
};

std::vector<Calls> MeasureAll(const std::vector<CallKind>& kinds) {
  std::vector<Calls> all;
  for (const CallKind& kind : kinds) {
    all.push_back(Measure(kind.call, kind.duration));
  }
  return all;
}

// --- attackers ---

// StormAttackers that storm one socket. They begin stopped, and end with this.
class StormAttackers {
 public:
  StormAttackers(const DaemonProcess& daemon, const std::string& socket_words, int held) {
    for (int index = 0; index < kAttackers; ++index) {
      attackers_.push_back(StartAttacker(daemon));
      attackers_.back()->MustRun("become " + std::to_string(WorkloadUid()));
      attackers_.back()->MustRun("storm " + socket_words + " " + std::to_string(held));
    }
    Pause();
  }

  void Pause() {
    for (const auto& attacker : attackers_) {
      EXPECT_TRUE(attacker->process().StopAndWait());
    }
  }
  void Continue() {
    for (const auto& attacker : attackers_) {
      attacker->process().Signal(SIGCONT);
    }
  }

 private:
  std::vector<std::unique_ptr<ChildClient>> attackers_;
};

// The same storm against a process that accepts and closes.
class ElsewhereStorm {
 public:
  ElsewhereStorm(const DaemonProcess& daemon, int held) {
    if (TwoUids()) {
      directory_.GiveTo(WorkloadUid());
    }
    server_ = StartAttacker(daemon);
    server_->MustRun("become " + std::to_string(WorkloadUid()));
    server_->MustRun("serve stream " + path());
    attackers_ = std::make_unique<StormAttackers>(daemon, "stream " + path(), held);
  }

  StormAttackers& attackers() { return *attackers_; }

 private:
  std::string path() const { return directory_.path() + "/elsewhere"; }

  TempDir directory_;
  std::unique_ptr<ChildClient> server_;
  std::unique_ptr<StormAttackers> attackers_;
};

// --- the fixture ---

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
    // The kernel would refuse the attackers on the operators' socket.
    if (GetParam().socket == DaemonSocket::kAdmin) {
      ASSERT_TRUE(LetEveryoneReachAdmin(*daemon_));
    }
    storm_ = std::make_unique<StormAttackers>(*daemon_, WordsOf(*daemon_, GetParam().socket), GetParam().held);
    // gRPC does not wait for a place in a queue that is full.
    WaitForTheQueues();
  }

  // Returns when the daemon has dealt with all that was in the queues of its sockets.
  void WaitForTheQueues() {
    EXPECT_TRUE(Eventually([&] { return NewClient(); }));
    EXPECT_TRUE(Eventually([&] { return ExchangeFd(daemon_->fd_socket(), FdRequestBytes("", 0)).replied; }));
    EXPECT_TRUE(Eventually([&] { return NewOperator(); }));
  }
  bool NewClient() const { return CallOnce(daemon_->rpc_socket(), SessionStub::OpenSession.path); }
  bool NewOperator() const { return CallOnce(daemon_->admin_socket(), AdminStub::ListSessions.path); }

  std::unique_ptr<DaemonProcess> daemon_;
  std::unique_ptr<StormAttackers> storm_;
};

// A call of each kind, then all again: what disturbs this machine meanwhile disturbs all of them.
TEST_P(Storm, DelaysNoCallAndKeepsNobodyOut) {
  TestSession session(*daemon_);
  ElsewhereStorm elsewhere(*daemon_, GetParam().held);
  const std::vector<CallKind> kinds = {
      {"calls of a client", kCallsPhase, [&] { return session.Call(&AdapterStub::ListAdapters, {}).ok(); }},
      {"new clients", kNewcomersPhase, [&] { return NewClient(); }},
      {"new operators", kNewcomersPhase, [&] { return NewOperator(); }}};
  std::vector<Comparison> comparisons(kinds.size());
  for (int round = 0; round < kStormRounds; ++round) {
    elsewhere.attackers().Continue();
    const std::vector<Calls> alone = MeasureAll(kinds);
    elsewhere.attackers().Pause();
    storm_->Continue();
    const std::vector<Calls> stormed = MeasureAll(kinds);
    storm_->Pause();
    WaitForTheQueues();
    for (size_t kind = 0; kind < kinds.size(); ++kind) {
      comparisons[kind].Add(alone[kind], stormed[kind]);
    }
  }
  for (size_t kind = 0; kind < kinds.size(); ++kind) {
    comparisons[kind].Print(GetParam().name, kinds[kind].name);
    // Newcomers stand in the queue that the storm fills, as long as the kernel makes it (docs/LIMITS.md).
    EXPECT_GT(comparisons[kind].served(), 0u) << kinds[kind].name;
  }
  EXPECT_LE(comparisons.front().ratio(), kRatioMax);
}

bool IsListed(RawClient& operators, uint64_t session_id) {
  const auto listed = operators.Call(&AdminStub::ListSessions, {});
  EXPECT_TRUE(ExpectOk(listed));
  const auto& sessions = listed.response.sessions();
  return std::any_of(sessions.begin(), sessions.end(),
                     [&](const v1::SessionInfo& session) { return session.session_id() == session_id; });
}

// From the moment at which the kernel reports the process as ended.
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
  storm_->Continue();
  Delays times;
  for (size_t index = 0; index < clients.size(); ++index) {
    clients[index]->KillHard();
    const auto begin = steady_clock::now();
    ASSERT_TRUE(Eventually([&] { return !IsListed(operators, sessions[index]); }));
    times.push_back(MillisecondsSince(begin));
  }
  std::printf("%s, deaths: %.1f ms in the median, at most %.1f ms\n", GetParam().name, Median(times),
              Quantile(times, 1));
  EXPECT_LE(Median(times), kDeathMsMax * kSlowness);
}

TEST_P(Storm, DoesNotKeepTheDaemonFromStopping) {
  TestSession session(*daemon_);
  storm_->Continue();
  ExpectOk(session.Call(&SessionStub::GetSession, {}));
  const absl::Status stopped = daemon_->Stop();
  EXPECT_TRUE(stopped.ok()) << stopped;
}

INSTANTIATE_TEST_SUITE_P(Each, Storm, testing::ValuesIn(kStorms), [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace rnicd::test
