// Attacks with descriptors: a process without any privilege passes descriptors whose close() blocks for as long as it
// likes, in every way in which the daemon can come to hold one; or a file whose lock it keeps. Nobody else may notice,
// and SIGTERM ends the daemon.
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <ostream>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "absl/strings/escaping.h"
#include "base/hex.h"
#include "tests/integration/http2_frames.h"
#include "tests/integration/trust_fixture.h"
#include "tests/support/calls/fd_exchange.h"
#include "tests/support/hostile/attacker.h"
#include "tests/support/process/child_client.h"

namespace rnicd::test {
namespace {

// Connections of an attack: more than the daemon has threads.
constexpr int kConnections = 50;
// The most descriptors that the kernel takes in a packet.
constexpr int kFullPacket = 253;
constexpr int kFullPackets = 4;
// Connections that an owner may have where the attack goes beyond the limit.
constexpr int kLimit = 16;

// --- the ways to the daemon ---

struct Way {
  const char* name;
  DaemonSocket socket;
  // The first bytes; with `ticket`, a well-formed request for as many descriptors follows instead.
  std::string bytes;
  int baits = 1;
  int connections = kConnections;
  // The attacker hangs up at once, so that the descriptor is the daemon's alone.
  bool leaves = false;
  // The packet is for an import that waits for a file.
  bool ticket = false;
  int memory_files = 0;
  // As root on the operators' socket; otherwise as a user who is let that far by the modes of the files.
  bool is_operator = false;
  bool beyond_the_limit = false;
};

void PrintTo(const Way& way, std::ostream* out) { *out << way.name; }

std::vector<Way> Ways() {
  const std::string unknown_ticket = FdRequestBytes(std::string(16, 'x'), 1);
  return {
      {.name = "RpcWithThePreface", .socket = DaemonSocket::kRpc, .bytes = Hello()},
      {.name = "RpcWithoutAPreface", .socket = DaemonSocket::kRpc, .bytes = "x"},
      {.name = "RpcWithASession",
       .socket = DaemonSocket::kRpc,
       .bytes = Hello() + WholeCall(SessionStub::OpenSession.path, 1, "")},
      {.name = "RpcFullPackets",
       .socket = DaemonSocket::kRpc,
       .bytes = Hello(),
       .baits = kFullPacket,
       .connections = kFullPackets},
      {.name = "RpcAndLeft", .socket = DaemonSocket::kRpc, .bytes = Hello(), .leaves = true},
      {.name = "RpcAboveTheLimit", .socket = DaemonSocket::kRpc, .bytes = Hello(), .beyond_the_limit = true},
      {.name = "AdminOfAnOperator", .socket = DaemonSocket::kAdmin, .bytes = Hello(), .is_operator = true},
      {.name = "AdminOfAnOperatorAndLeft",
       .socket = DaemonSocket::kAdmin,
       .bytes = Hello(),
       .leaves = true,
       .is_operator = true},
      {.name = "AdminOfNoOperator", .socket = DaemonSocket::kAdmin, .bytes = Hello()},
      {.name = "FdWithAnUnknownTicket", .socket = DaemonSocket::kFd, .bytes = unknown_ticket},
      {.name = "FdWithGarbage", .socket = DaemonSocket::kFd, .bytes = "x"},
      {.name = "FdFullPackets",
       .socket = DaemonSocket::kFd,
       .bytes = unknown_ticket,
       .baits = kFullPacket,
       .connections = kFullPackets},
      {.name = "FdAndLeft", .socket = DaemonSocket::kFd, .bytes = unknown_ticket, .leaves = true},
      {.name = "FdAboveTheLimit", .socket = DaemonSocket::kFd, .bytes = unknown_ticket, .beyond_the_limit = true},
      {.name = "FdAsAnImport", .socket = DaemonSocket::kFd, .ticket = true},
      {.name = "FdAsAnImportAndLeft", .socket = DaemonSocket::kFd, .leaves = true, .ticket = true},
      {.name = "FdBehindTheFileOfAnImport",
       .socket = DaemonSocket::kFd,
       .baits = kFullPacket - 1,
       .connections = kFullPackets,
       .ticket = true,
       .memory_files = 1},
      {.name = "FdFullPacketsAsAnImport",
       .socket = DaemonSocket::kFd,
       .baits = kFullPacket,
       .connections = kFullPackets,
       .ticket = true},
  };
}

// --- an attack ---

// What the kernel did with the packets of an attack.
struct Sent {
  int taken = 0;
  // The socket takes no descriptors (SO_PASSRIGHTS, Linux 6.16): the daemon never sees any.
  int refused = 0;
};

// Bytes of the next packet, as digits; asks for a ticket if the way needs one.
std::string Digits(ChildClient& client, const Way& way) {
  if (!way.ticket) {
    return absl::BytesToHexString(way.bytes);
  }
  const std::string ticket = BytesFromHex(client.MustRun("ticket 4096").values["ticket"]).value();
  return absl::BytesToHexString(FdRequestBytes(ticket, static_cast<uint32_t>(way.memory_files + way.baits)));
}

// The daemon is stopped meanwhile: everything is in its queues when it goes on, so that no thread of it escapes.
Sent Send(DaemonProcess& daemon, ChildClient& client, const Way& way) {
  std::vector<std::string> packets;
  for (int connection = 0; connection < way.connections; ++connection) {
    packets.push_back(Digits(client, way));
  }
  if (way.beyond_the_limit) {
    client.MustRun("hold " + WordsOf(daemon, way.socket) + " " + std::to_string(kLimit));
  }
  EXPECT_TRUE(daemon.process().StopAndWait());
  Sent sent;
  for (const std::string& digits : packets) {
    const ChildAnswer answer =
        client.Run("send " + WordsOf(daemon, way.socket) + (way.leaves ? " leave " : " stay ") +
                   std::to_string(way.memory_files) + " " + std::to_string(way.baits) + " " + digits);
    sent.taken += answer.ok;
    sent.refused += answer.reason == "EPERM";
  }
  return sent;
}

// --- what holds meanwhile ---

// False when the daemon does not even open a session: the other expectations would only take their time to fail.
bool OpensSessions(DaemonProcess& daemon) {
  RawClient client(daemon.rpc_socket());
  return ExpectOk(client.Call(&SessionStub::OpenSession, {}));
}

void ExpectMovesBytes(DaemonProcess& daemon) {
  ConnectedPair pair(daemon);
  const SharedPage source(pair.far_session, "of the far side");
  const SharedPage sink(pair.near_session);
  EXPECT_EQ(ReadFrom(pair.near, sink, kBase, source.registration.remote_token(), 15), kStatusSuccess);
  EXPECT_EQ(sink.memory.Text(0, 15), "of the far side");
}

void ExpectImports(DaemonProcess& daemon) {
  TestSession session(daemon);
  const v1::ImportMemoryResponse announced = session.Import(kPage);
  const UniqueFd file = MakeSealableMemfd(kPage);
  ASSERT_TRUE(ExpectFdOk(SendFd(daemon.fd_socket(), announced.fd_ticket(), file.get())));
  ExpectOk(session.Seal(announced.memory_id()));
  session.RegisterWhole(session.CreateMr(), announced.memory_id(), kPage);
}

bool HasSession(const DaemonProcess& daemon, uint64_t session_id) {
  return std::ranges::any_of(AdminSessions(daemon), [session_id](const v1::SessionInfo& session) {
    return session.session_id() == session_id;
  });
}

void ExpectReclaimsTheDead(DaemonProcess& daemon) {
  const auto client = ChildClient::Start(daemon, OtherUid());
  ASSERT_NE(client, nullptr);
  const uint64_t session_id = client->MustRun("open").number("session");
  EXPECT_TRUE(HasSession(daemon, session_id));
  client->KillHard();
  EXPECT_TRUE(Eventually([&] { return !HasSession(daemon, session_id); }));
}

// Stops at the first failure: on a daemon that hangs, each takes a whole timeout.
bool ExpectServes(DaemonProcess& daemon) {
  for (const auto expect : {ExpectImports, ExpectMovesBytes, ExpectReclaimsTheDead}) {
    if (!OpensSessions(daemon)) {
      return false;
    }
    expect(daemon);
    if (testing::Test::HasFailure()) {
      return false;
    }
  }
  return true;
}

// --- the tests ---

class DescriptorAttack : public testing::TestWithParam<std::tuple<BaitKind, Way>> {
 protected:
  BaitKind kind() const { return std::get<0>(GetParam()); }
  const Way& way() const { return std::get<1>(GetParam()); }

  void SetUp() override {
    DaemonOptions options;
    // All of the test's own clients but one have another uid than the attacker, where there are two.
    if (way().beyond_the_limit && TwoUids()) {
      options.flags = {"--max_connections_per_uid=" + std::to_string(kLimit)};
    }
    StartDaemon(options);
    // An attacker without a place in the queue of operators is no attack on it.
    if (way().socket == DaemonSocket::kAdmin && !way().is_operator) {
      ASSERT_TRUE(LetEveryoneReachAdmin(*daemon_));
    }
    attacker_ = BaitedAttacker::Start(*daemon_, way().is_operator ? geteuid() : WorkloadUid(), kind(),
                                      way().baits * way().connections);
    ASSERT_NE(attacker_, nullptr);
  }

  void StartDaemon(const DaemonOptions& options) {
    auto started = DaemonProcess::Start(options);
    ASSERT_TRUE(started.ok()) << started.status();
    daemon_ = *std::move(started);
    idle_ = MeasureIdle(*daemon_);
  }

  // The daemon is stopped afterwards.
  void Queue() {
    const Sent sent = Send(*daemon_, attacker_->client(), way());
    EXPECT_EQ(sent.taken + sent.refused, way().connections);
    EXPECT_TRUE(sent.refused == 0 || way().socket != DaemonSocket::kFd) << "the fd socket is for descriptors";
    RecordProperty("taken", sent.taken);
  }

  // After SIGTERM.
  void ExpectStops() {
    EXPECT_TRUE(daemon_->process().errors().WaitFor("stopped", kTimeout)) << daemon_->log();
    EXPECT_NE(access(daemon_->rpc_socket().c_str(), F_OK), 0);
    // A thread that closes a stuck file keeps the process, but a lingering socket does not.
    if (kind() != BaitKind::kLingeringSocket) {
      attacker_->Release();
    }
    const auto end = daemon_->process().WaitForEnd();
    ASSERT_TRUE(end.has_value());
    EXPECT_EQ(end->exit_code, 0) << daemon_->log();
  }

  std::unique_ptr<DaemonProcess> daemon_;
  IdleState idle_;
  // Released before the daemon is reaped: a process that closes a stuck file cannot be killed.
  std::unique_ptr<BaitedAttacker> attacker_;
};

TEST_P(DescriptorAttack, HoldsNobodyUpAndLeavesNothing) {
  Queue();
  daemon_->process().Signal(SIGCONT);
  ASSERT_TRUE(ExpectServes(*daemon_));
  attacker_->Release();
  ExpectNothingHeld(*daemon_, idle_);
}

TEST_P(DescriptorAttack, DoesNotKeepTheDaemonFromStopping) {
  Queue();
  daemon_->process().Signal(SIGCONT);
  EXPECT_TRUE(OpensSessions(*daemon_));
  daemon_->BeginStop();
  ExpectStops();
}

// One row for each queue: what the daemon would do with the packet later makes no difference.
class QueuedDescriptors : public DescriptorAttack {};

TEST_P(QueuedDescriptors, DoNotKeepTheDaemonFromStopping) {
  Queue();
  daemon_->BeginStop();
  daemon_->process().Signal(SIGCONT);
  ExpectStops();
}

std::string NameOfRow(const testing::TestParamInfo<std::tuple<BaitKind, Way>>& row) {
  return NameOf(std::get<0>(row.param)) + std::get<1>(row.param).name;
}

std::vector<Way> WaysOf(const std::function<bool(const Way&)>& wanted) {
  std::vector<Way> ways = Ways();
  std::erase_if(ways, [&](const Way& way) { return !wanted(way); });
  return ways;
}

std::vector<Way> WaysOf(const std::set<std::string>& names) {
  return WaysOf([&](const Way& way) { return names.contains(way.name); });
}

// Those that block their last close.
std::vector<BaitKind> BaitsOfTheLastClose() {
  return PossibleHere({BaitKind::kLingeringSocket, BaitKind::kSocketWithStuckFile});
}

INSTANTIATE_TEST_SUITE_P(EachWay, DescriptorAttack,
                         testing::Combine(testing::ValuesIn(BaitsOfTheLastClose()), testing::ValuesIn(Ways())),
                         NameOfRow);

// The kernel closes a stuck file of a packet without its server. The daemon must have taken it out.
INSTANTIATE_TEST_SUITE_P(Taken, DescriptorAttack,
                         testing::Combine(testing::ValuesIn(PossibleHere({BaitKind::kStuckFile})),
                                          testing::ValuesIn(WaysOf([](const Way& way) {
                                            return way.socket == DaemonSocket::kFd && !way.beyond_the_limit;
                                          }))),
                         NameOfRow);

// What an import does with a file before it knows that it is none of memory.
INSTANTIATE_TEST_SUITE_P(Facts, DescriptorAttack,
                         testing::Combine(testing::ValuesIn(PossibleHere({BaitKind::kMuteFile})),
                                          testing::ValuesIn(WaysOf({"FdAsAnImport"}))),
                         NameOfRow);

INSTANTIATE_TEST_SUITE_P(EachQueue, QueuedDescriptors,
                         testing::Combine(testing::ValuesIn(BaitsOfTheLastClose()),
                                          testing::ValuesIn(WaysOf({"RpcWithThePreface", "FdWithAnUnknownTicket",
                                                                    "AdminOfAnOperator", "AdminOfNoOperator"}))),
                         NameOfRow);

// A client is in a write(2) that never ends, from memory whose page it withholds, and so has the lock of the file that
// it imports or seals.
struct WrittenFile {
  const char* name;
  const char* command;
};

void PrintTo(const WrittenFile& attack, std::ostream* out) { *out << attack.name; }

// More sessions than the daemon has rpc loops.
std::vector<WrittenFile> WrittenFiles() {
  return CanWithholdPages() ? std::vector<WrittenFile>{{.name = "Import", .command = "import-written"},
                                                       {.name = "Seal", .command = "seal-written 8"}}
                            : std::vector<WrittenFile>();
}

// Threads in a system call that nothing interrupts.
size_t StuckThreads(pid_t pid) {
  size_t stuck = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task")) {
    std::ifstream file(task.path() / "stat");
    const std::string text(std::istreambuf_iterator<char>(file), {});
    const size_t name_end = text.rfind(')');
    stuck += name_end != std::string::npos && text.compare(name_end, 3, ") D") == 0 ? 1 : 0;
  }
  return stuck;
}

class WrittenFileAttack : public testing::TestWithParam<WrittenFile> {
 protected:
  void SetUp() override {
    auto started = DaemonProcess::Start();
    ASSERT_TRUE(started.ok()) << started.status();
    daemon_ = *std::move(started);
    idle_ = MeasureIdle(*daemon_);
    attacker_ = StartAttacker(*daemon_);
    ASSERT_NE(attacker_, nullptr);
    ASSERT_TRUE(attacker_->MustRun("withhold").ok);
    ASSERT_TRUE(attacker_->MustRun("become " + std::to_string(WorkloadUid())).ok);
    ASSERT_TRUE(attacker_->MustRun(GetParam().command).ok);
    EXPECT_TRUE(Eventually([this] { return StuckThreads(daemon_->process().pid()) > 0; })) << "it blocks nothing";
  }

  std::unique_ptr<DaemonProcess> daemon_;
  IdleState idle_;
  // Killed before the daemon is reaped: the end of its write releases the daemon's thread.
  std::unique_ptr<ChildClient> attacker_;
};

TEST_P(WrittenFileAttack, HoldsNobodyUpAndLeavesNothing) {
  ASSERT_TRUE(ExpectServes(*daemon_));
  attacker_->KillHard();
  ExpectNothingHeld(*daemon_, idle_);
}

TEST_P(WrittenFileAttack, DoesNotKeepTheDaemonFromStopping) {
  EXPECT_TRUE(OpensSessions(*daemon_));
  daemon_->BeginStop();
  EXPECT_TRUE(daemon_->process().errors().WaitFor("stopped", kTimeout)) << daemon_->log();
  attacker_->KillHard();
  const auto end = daemon_->process().WaitForEnd();
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->exit_code, 0) << daemon_->log();
}

INSTANTIATE_TEST_SUITE_P(EachCall, WrittenFileAttack, testing::ValuesIn(WrittenFiles()),
                         [](const auto& row) { return std::string(row.param.name); });

// Whether a thread of the process is inside close().
bool HasThreadInClose(pid_t pid) {
  const std::filesystem::directory_iterator threads("/proc/" + std::to_string(pid) + "/task");
  return std::any_of(begin(threads), end(threads), [](const auto& thread) {
    long call = -1;
    std::ifstream(thread.path() / "syscall") >> call;
    return call == SYS_close;
  });
}

// The attacks prove something only while this holds.
class Bait : public testing::TestWithParam<BaitKind> {};

TEST_P(Bait, BlocksItsCloseUntilItIsReleased) {
  const auto daemon = DaemonProcess::Start();
  ASSERT_TRUE(daemon.ok()) << daemon.status();
  const auto attacker = BaitedAttacker::Start(**daemon, WorkloadUid(), GetParam(), 1);
  ASSERT_NE(attacker, nullptr);
  ChildClient& client = attacker->client();
  client.MustRun("close");
  EXPECT_TRUE(Eventually([&] { return HasThreadInClose(client.process().pid()); })) << "the close does not block";
  if (GetParam() == BaitKind::kLingeringSocket) {
    client.Send("reset");
    EXPECT_TRUE(client.Answer().ok);
  } else {
    attacker->StopServing();
  }
  EXPECT_TRUE(client.Answer().ok) << "the close has not returned";
  EXPECT_TRUE((*daemon)->Stop().ok());
}

INSTANTIATE_TEST_SUITE_P(EachKind, Bait,
                         testing::ValuesIn(PossibleHere({BaitKind::kLingeringSocket, BaitKind::kStuckFile,
                                                         BaitKind::kSocketWithStuckFile})),
                         [](const auto& row) { return NameOf(row.param); });

}  // namespace
}  // namespace rnicd::test
