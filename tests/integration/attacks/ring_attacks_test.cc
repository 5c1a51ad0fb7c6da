// Attacks by rings: a process without any privilege writes what it likes into the memory that it shares with the
// daemon, and does what it likes with the descriptors. The ring and the calls of another user work meanwhile, the
// daemon's metrics say what it has seen, nothing stays when the attacker is killed, and SIGTERM ends the daemon.

#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ring/client_end.h"
#include "tests/support/admin_client.h"
#include "tests/support/calls/expect.h"
#include "tests/support/hostile/attacker.h"
#include "tests/support/hostile/raw_ring.h"
#include "tests/support/hostile/ring_attacks.h"
#include "tests/support/metrics_page.h"
#include "tests/support/process/child_client.h"
#include "tests/support/process/temp_dir.h"
#include "tests/support/shared_daemon.h"
#include "tests/support/test_session.h"

namespace rnicd::test {
namespace {

// Calls a second of each other user: far below what an attacker tries.
constexpr int kAttackersRate = 2000;
// Rounds of an attack before others are looked at; the attack goes on meanwhile.
constexpr int kRounds = 10;
constexpr int kEntries = 500;
constexpr int kCalls = 50;

struct Attack {
  std::string name;
  // A sample of the metrics page that grows; by so much already because of the client beside the attacker.
  std::string metric;
  int of_others = 0;
};

void PrintTo(const Attack& attack, std::ostream* out) { *out << attack.name; }

const Attack kRingAttacks[] = {
    {"doorbells", "rnicd_ring_empty_wakeups_total"},
    {"counter", "rnicd_ring_empty_wakeups_total"},
    {"impossible-indices", "rnicd_rings_broken_total"},
    {"entries-taken-back", "rnicd_ring_doorbells_total", kEntries},
    {"any-bytes", "rnicd_ring_refused_entries_total"},
    {"without-outcome", "rnicd_ring_refused_entries_total"},
    {"payload-outside", "rnicd_ring_refused_entries_total"},
    {"rewritten-while-judged", "rnicd_ring_refused_entries_total"},
    {"no-outcome-read", "rnicd_ring_empty_wakeups_total"},
    {"wakeups-toggled", "rnicd_ring_entries_total", kEntries},
    {"pipe-not-read", "rnicd_ring_entries_total", kEntries},
    {"holes", "rnicd_rings_broken_total"},
    {"shared-with-a-child", "rnicd_ring_entries_total", kEntries},
    {"imported", "rnicd_ring_entries_total", kEntries},
    {"opened-and-closed", "rnicd_ring_entries_total", kEntries},
    {"many-awake", "rnicd_ring_entries_total", kEntries},
    {"queue-scribbled-over", "rnicd_rpcs_total{code=\"OK\",method=\"QueueService.Flush\"}"},
};

// The user of this process is a tenant without a rate; every other one has a small one.
std::vector<std::string> Flags() {
  return {kMetricsOnFreePort,
          PolicyFlag("tenant { name: \"us\" match { uid: " + std::to_string(geteuid()) +
                     " } }\ntenant { name: \"others\" sharing: SHARING_EACH_UID limits { requests_per_second: " +
                     std::to_string(kAttackersRate) + " } }\ndefault_tenant: \"others\"\n")};
}

// --- the client beside the attacker ---

// A client with a ring, which waits with futexes.
class HonestClient {
 public:
  explicit HonestClient(DaemonProcess& daemon)
      : session_(daemon),
        ring_(RawRing::Open(session_, daemon.fd_socket())),
        end_(*ring::ClientEnd::Open(ring_->bytes())) {}

  // One after the other, so that each waits for its own outcome.
  void ExpectIsServed() {
    for (int entry = 0; entry < kEntries; ++entry) {
      ASSERT_TRUE(Nop()) << entry;
    }
    for (int call = 0; call < kCalls; ++call) {
      ASSERT_TRUE(ExpectOk(session_.Call(&SessionStub::GetSession, {})));
    }
  }

 private:
  bool Nop() {
    bool doorbell = false;
    if (!end_.Reserve(0).has_value()) {
      return false;
    }
    end_.Submit({}, &doorbell);
    if (doorbell) {
      ring_->RingDoorbell();
    }
    return Eventually([&] {
      // Returns with the outcome; the time is only that of a test that fails.
      end_.Wait(kTimeout);
      return end_.Poll().has_value();
    });
  }

  TestSession session_;
  const std::unique_ptr<RawRing> ring_;
  ring::ClientEnd end_;
};

std::unique_ptr<ChildClient> StartRingAttacker(const DaemonProcess& daemon) {
  auto attacker = StartAttacker(daemon);
  if (attacker != nullptr) {
    attacker->MustRun("become " + std::to_string(WorkloadUid()));
  }
  return attacker;
}

bool BeginAttack(ChildClient& attacker, const std::string& name) {
  attacker.Send("ring " + name + " " + std::to_string(kRounds));
  const ChildAnswer answer = attacker.Answer(3 * kTimeout);
  EXPECT_TRUE(answer.ok) << answer.reason;
  return answer.ok;
}

std::string NameOfAttack(const testing::TestParamInfo<Attack>& row) {
  std::string name = row.param.name;
  std::erase(name, '-');
  return name;
}

// --- the tests ---

class RingAttacks : public DaemonTest, public testing::WithParamInterface<Attack> {
 protected:
  RingAttacks() : DaemonTest(Flags()) {}

  double Metric(const std::string& name) {
    return MetricsPage(HttpGet(AdminStatus(daemon()).metrics_address(), "/metrics").body).Sum(name);
  }
};

TEST_P(RingAttacks, CostOnlyTheAttackerAndLeaveNothing) {
  const double before = Metric(GetParam().metric);
  const size_t mapped = daemon().mapped_files();
  {
    HonestClient client(daemon());
    const auto attacker = StartRingAttacker(daemon());
    ASSERT_NE(attacker, nullptr);
    ASSERT_TRUE(BeginAttack(*attacker, GetParam().name));
    client.ExpectIsServed();
    EXPECT_TRUE(attacker->process().running()) << "it attacked all the time";
    EXPECT_TRUE(Eventually([&] { return Metric(GetParam().metric) > before + GetParam().of_others; }));
    attacker->KillHard();
    client.ExpectIsServed();
  }
  EXPECT_TRUE(Eventually([&] { return daemon().mapped_files() == mapped; }));
}

INSTANTIATE_TEST_SUITE_P(Each, RingAttacks, testing::ValuesIn(kRingAttacks), NameOfAttack);

class RingAttackAtTheEnd : public testing::TestWithParam<Attack> {};

TEST_P(RingAttackAtTheEnd, DoesNotKeepTheDaemonFromStopping) {
  const auto daemon = DaemonProcess::Start({.flags = Flags()});
  ASSERT_TRUE(daemon.ok()) << daemon.status();
  const auto attacker = StartRingAttacker(**daemon);
  ASSERT_NE(attacker, nullptr);
  ASSERT_TRUE(BeginAttack(*attacker, GetParam().name));
  const absl::Status stopped = (*daemon)->Stop();
  EXPECT_TRUE(stopped.ok()) << stopped;
}

INSTANTIATE_TEST_SUITE_P(Each, RingAttackAtTheEnd, testing::ValuesIn(kRingAttacks), NameOfAttack);

class RingAttack : public DaemonTest {
 protected:
  RingAttack() : DaemonTest(Flags()) {}

  uint64_t LingeringBytes() { return Used(AdminStatus(daemon()), "lingering_bytes"); }
};

TEST_F(RingAttack, EachOneOfTheSuiteIsTested) {
  std::vector<std::string> tested;
  for (const Attack& attack : kRingAttacks) {
    tested.push_back(attack.name);
  }
  EXPECT_EQ(tested, RingAttackNames());
}

// The descriptors of a ring, in a process of another user: it acts in the session of the one that lent them, and can
// keep its memory, which stays charged to that one's tenant.
TEST_F(RingAttack, AnotherUserWithTheDescriptorsCostsTheLenderOnly) {
  HonestClient client(daemon());
  const auto lender = StartRingAttacker(daemon());
  const auto other = StartAttacker(daemon());
  ASSERT_TRUE(lender != nullptr && other != nullptr);
  const ChildAnswer lent = lender->MustRun("lend");
  other->MustRun("adopt " + std::to_string(lender->process().pid()) + " " + std::to_string(lent.number("memory")) +
                 " " + std::to_string(lent.number("doorbell")) + " " + std::to_string(lent.number("bytes")));
  other->MustRun("become " + std::to_string(OtherUid()));
  other->MustRun("spoil");
  client.ExpectIsServed();
  lender->KillHard();
  EXPECT_TRUE(Eventually([&] { return LingeringBytes() == lent.number("bytes"); }));
  client.ExpectIsServed();
  other->KillHard();
  EXPECT_TRUE(Eventually([&] { return LingeringBytes() == 0; }));
}

}  // namespace
}  // namespace rnicd::test
