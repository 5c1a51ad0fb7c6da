// Attacks on the gRPC socket by a process without any privilege, in frames written by hand. Each is run twice against a
// daemon of its own: while it lasts, other clients and the operator are served, the daemon's memory stays within a
// bound and is back afterwards; and SIGTERM ends the daemon in the middle of it.
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/units.h"
#include "tests/integration/http2_frames.h"
#include "tests/support/admin_client.h"
#include "tests/support/calls/expect.h"
#include "tests/support/process/child_process.h"
#include "tests/support/process/raw_socket.h"
#include "tests/support/shared_daemon.h"
#include "tests/support/test_session.h"

namespace rnicd::test {
namespace {

using std::chrono::milliseconds;

constexpr char kOpenSession[] = "/rnicd.v1.SessionService/OpenSession";
constexpr char kRegisterMr[] = "/rnicd.v1.MemoryService/RegisterMr";
// Frames that an attacker writes at once.
constexpr int kFramesAtOnce = 512;

// --- the attackers ---

// One connection of an attacker. Sends without regard to any rule, and drops what it receives.
class Attacker {
 public:
  explicit Attacker(const std::string& path) : socket_(ConnectUnix(path, SOCK_STREAM)) {
    fcntl(socket_.get(), F_SETFL, O_NONBLOCK);
    Send(Hello());
  }

  // Sends all; false when the daemon has hung up, or has stopped reading from a client that does not read.
  bool Send(std::string_view bytes, bool reads = true) {
    while (!bytes.empty()) {
      const ssize_t sent = send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent > 0) {
        bytes.remove_prefix(static_cast<size_t>(sent));
      } else if (errno != EAGAIN || !WaitFor(reads ? POLLIN | POLLOUT : POLLOUT, reads ? kTimeout : kStuck)) {
        return false;
      }
      if (reads && !Drain()) {
        return false;
      }
    }
    return true;
  }

 private:
  // The daemon may have stopped to read. When it is only slow, the attack is a shorter one.
  static constexpr milliseconds kStuck{50};

  bool WaitFor(int what, milliseconds limit) const {
    pollfd watched = {.fd = socket_.get(), .events = static_cast<int16_t>(what), .revents = 0};
    return poll(&watched, 1, static_cast<int>(limit.count())) == 1;
  }
  // Drops what has come; false when the daemon has hung up.
  bool Drain() const {
    std::array<char, 65536> buffer;
    ssize_t size = 0;
    while ((size = recv(socket_.get(), buffer.data(), buffer.size(), 0)) > 0) {
    }
    return size < 0 && errno == EAGAIN;
  }

  const UniqueFd socket_;
};

// The connections of an attack stay open until the daemon was measured.
using Attackers = std::vector<std::unique_ptr<Attacker>>;
using Attack = std::function<void(const std::string& path, Attackers& attackers)>;

std::string Times(int count, const std::string& bytes) {
  std::string all;
  for (int time = 0; time < count; ++time) {
    all += bytes;
  }
  return all;
}

// Streams of a client have odd numbers.
uint32_t StreamId(int index) { return static_cast<uint32_t>(2 * index + 1); }

// Connections that send their first bytes once and then the others again and again, until the daemon has had enough.
Attack Flood(int connections, const std::string& first, const std::string& then, int times, bool reads) {
  return [=](const std::string& path, Attackers& attackers) {
    for (int connection = 0; connection < connections; ++connection) {
      attackers.push_back(std::make_unique<Attacker>(path));
      Attacker& attacker = *attackers.back();
      bool open = attacker.Send(first, reads);
      for (int time = 0; open && time < times; ++time) {
        open = attacker.Send(then, reads);
      }
    }
  };
}

// Connections that open many streams, each with these frames.
Attack Streams(int connections, int streams, std::function<std::string(uint32_t stream)> frames, bool reads) {
  return [=](const std::string& path, Attackers& attackers) {
    for (int connection = 0; connection < connections; ++connection) {
      attackers.push_back(std::make_unique<Attacker>(path));
      std::string bytes;
      for (int index = 0; index < streams; ++index) {
        bytes += frames(StreamId(index));
        if (bytes.size() > 65536 || index + 1 == streams) {
          if (!attackers.back()->Send(bytes, reads)) {
            break;
          }
          bytes.clear();
        }
      }
    }
  };
}

std::string OpenHeaders(uint32_t stream) {
  return Frame(FrameType::kHeaders, kEndHeaders, stream, CallHeaders(kOpenSession));
}

// A message of two million objects, if somebody makes them.
std::string EmptyMdlEntries(uint32_t stream) {
  return WholeCall(kRegisterMr, stream, Times(2 * kMiB - 1, std::string("\x12\0", 2)));
}

struct AttackRow {
  const char* name;
  Attack attack;
  // MiB that the daemon may grow by while the attack lasts.
  uint64_t growth_max;
};

const AttackRow kFrontDoorAttacks[] = {
    {"EndlessContinuation",
     Flood(8, Frame(FrameType::kHeaders, 0, 1, CallHeaders(kOpenSession)),
           Frame(FrameType::kContinuation, 0, 1, Times(1000, HeaderField("x", "0123456789"))), 1000, true),
     8},
    {"EndlessHpackInteger",
     Flood(8, Frame(FrameType::kHeaders, 0, 1, std::string(1, '\0') + '\x7f' + std::string(16000, '\xff')),
           Frame(FrameType::kContinuation, 0, 1, std::string(16000, '\xff')), 1000, true),
     8},
    {"EndlessHpackString",
     Flood(8, Frame(FrameType::kHeaders, 0, 1, std::string(1, '\0') + "\x7f\xff\xff\xff\x7f" + std::string(16000, 'x')),
           Frame(FrameType::kContinuation, 0, 1, std::string(16000, 'x')), 1000, true),
     8},
    {"StreamsWithoutAcknowledgedSettings", Streams(4, 10'000, OpenHeaders, false), 32},
    {"StreamsWithoutAcknowledgedSettingsThatReads", Streams(4, 10'000, OpenHeaders, true), 32},
    {"RapidReset",
     Streams(
         8, 10'000,
         [](uint32_t stream) {
           return OpenHeaders(stream) + Frame(FrameType::kResetStream, 0, stream, BigEndian(8, 4));
         },
         true),
     32},
    {"RapidResetOfWholeCalls",
     Streams(
         8, 10'000,
         [](uint32_t stream) {
           return WholeCall(kOpenSession, stream, "") + Frame(FrameType::kResetStream, 0, stream, BigEndian(8, 4));
         },
         true),
     32},
    {"ResetsOfStreamsThatNeverOpened",
     Flood(8, "", Times(kFramesAtOnce, Frame(FrameType::kResetStream, 0, 99, BigEndian(8, 4))), 1000, true), 8},
    {"HalfSentMessages",
     Streams(
         6, 1000, [](uint32_t stream) { return HalfCall(kRegisterMr, stream, 4 << 20, std::string(16000, 'x')); },
         true),
     96},
    {"HalfSentSmallMessages",
     Streams(
         6, 1000, [](uint32_t stream) { return HalfCall(kRegisterMr, stream, 16001, std::string(16000, 'x')); }, true),
     96},
    {"LongPaths",
     Streams(
         6, 1000,
         [](uint32_t stream) {
           // Two bytes of length for a path of 10,000 bytes.
           const std::string path = std::string(1, '\0') + '\x05' + ":path" + "\x7f\x91\x4d" + std::string(10'000, '/');
           return Frame(FrameType::kHeaders, kEndHeaders, stream,
                        HeaderField(":method", "POST") + HeaderField(":scheme", "http") + path +
                            HeaderField(":authority", "a") + HeaderField("content-type", "application/grpc"));
         },
         true),
     32},
    {"AnswersThatNobodyReads",
     Streams(
         8, 10'000, [](uint32_t stream) { return WholeCall("/no/such", stream, ""); }, false),
     64},
    {"PingFlood", Flood(8, "", Times(kFramesAtOnce, Frame(FrameType::kPing, 0, 0, "12345678")), 1000, true), 8},
    {"PingFloodWithoutReading",
     Flood(8, "", Times(kFramesAtOnce, Frame(FrameType::kPing, 0, 0, "12345678")), 1000, false), 16},
    {"SettingsFlood", Flood(8, "", Times(kFramesAtOnce, Frame(FrameType::kSettings, 0, 0, "")), 1000, true), 8},
    {"SettingsFloodWithoutReading",
     Flood(8, "", Times(kFramesAtOnce, Frame(FrameType::kSettings, 0, 0, "")), 1000, false), 16},
    {"WindowUpdateFlood",
     Flood(8, "", Times(kFramesAtOnce, Frame(FrameType::kWindowUpdate, 0, 0, BigEndian(1, 4))), 1000, true), 8},
    {"EmptyDataFlood", Flood(8, OpenHeaders(1), Times(kFramesAtOnce, Frame(FrameType::kData, 0, 1, "")), 1000, true),
     8},
    {"EmptyMdlEntries", Streams(1, 4, EmptyMdlEntries, true), 64},
    {"ThousandConnections", Streams(1000, 1, OpenHeaders, true), 64},
};

// --- the daemon ---

// A line of the daemon's status, in KiB.
uint64_t StatusKiB(const DaemonProcess& daemon, const std::string& name) {
  std::ifstream file("/proc/" + std::to_string(const_cast<DaemonProcess&>(daemon).process().pid()) + "/status");
  std::string word;
  while (file >> word) {
    if (word == name + ":") {
      uint64_t kib = 0;
      file >> kib;
      return kib;
    }
  }
  ADD_FAILURE() << "no " << name;
  return 0;
}

// The rest of the thread runs as this user, whose connections belong to it. The kernel has users by thread.
void BecomeUser(uid_t uid) {
  if (TwoUids()) {
    ASSERT_EQ(syscall(SYS_setresuid, uid, uid, uid), 0);
  }
}

class FrontDoorAttack : public testing::TestWithParam<AttackRow> {
 protected:
  // Sanitizers keep what was freed, and add to what is used.
  static constexpr uint64_t kMore = 512 * kMiB;
  static uint64_t Allowance() { return kSlowness > 1 ? kMore : 0; }

  // The attackers' sockets are this process's; 1,024 descriptors, a common limit, are too few for them and the others.
  static void SetUpTestSuite() {
    rlimit limit = {};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  }

  void SetUp() override {
    auto started = DaemonProcess::Start();
    ASSERT_TRUE(started.ok()) << started.status();
    daemon_ = *std::move(started);
    idle_ = MeasureIdle(*daemon_);
  }
  std::thread Begin(Attackers& attackers, std::atomic<bool>& over) {
    return std::thread([&attackers, &over, path = daemon_->rpc_socket()] {
      BecomeUser(OtherUid());
      GetParam().attack(path, attackers);
      over.store(true);
    });
  }
  // Another user's client and the operator.
  void ExpectServes() {
    TestSession session(*daemon_);
    ExpectOk(session.Call(&SessionStub::GetSession, {}));
    AdminStatus(*daemon_);
  }

  std::unique_ptr<DaemonProcess> daemon_;
  IdleState idle_;
};

TEST_P(FrontDoorAttack, CostsOthersNothing) {
  ExpectServes();
  const uint64_t before = StatusKiB(*daemon_, "VmRSS");
  std::ofstream("/proc/" + std::to_string(daemon_->process().pid()) + "/clear_refs") << "5";  // VmHWM from now on.
  {
    Attackers attackers;
    std::atomic<bool> over = false;
    std::thread attack = Begin(attackers, over);
    do {
      ExpectServes();
    } while (!over.load());
    attack.join();
    ExpectServes();
    EXPECT_LE(StatusKiB(*daemon_, "VmHWM") * 1024, before * 1024 + GetParam().growth_max * kMiB + Allowance());
    RecordProperty("growth_kib", static_cast<int>(StatusKiB(*daemon_, "VmHWM") - before));
  }
  ExpectNothingHeld(*daemon_, idle_);
  constexpr uint64_t kLeftMax = 8 * kMiB;
  EXPECT_TRUE(Eventually([&] { return StatusKiB(*daemon_, "VmRSS") * 1024 <= before * 1024 + kLeftMax + Allowance(); }))
      << StatusKiB(*daemon_, "VmRSS") - before << " KiB are left";
  RecordProperty("left_kib", static_cast<int>(StatusKiB(*daemon_, "VmRSS") - before));

  Attackers attackers;
  std::atomic<bool> over = false;
  std::thread attack = Begin(attackers, over);
  ExpectServes();
  const absl::Status stopped = daemon_->Stop();
  EXPECT_TRUE(stopped.ok()) << stopped;
  attack.join();
}

INSTANTIATE_TEST_SUITE_P(EachAttack, FrontDoorAttack, testing::ValuesIn(kFrontDoorAttacks),
                         [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace rnicd::test
