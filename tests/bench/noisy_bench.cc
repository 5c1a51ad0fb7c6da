// rnicd_noisy_bench: the effect on one tenant of another that floods the daemon.
//
// A victim makes one call at a time at a steady pace, alternately alone and beside eight processes of another user, so
// that both halves of a ratio are measured in the same minutes. Runs with and without a policy's rate limit. With
// --role=KIND the program is one of the eight; --only=KIND runs beside floods of one kind: calls, registrations,
// connections with a session, or storms of connections that leave at once.
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/status.h"
#include "client/cpp/client.h"
#include "client/cpp/memory.h"
#include "client/cpp/memory_region.h"
#include "tests/bench/crowd.h"
#include "tests/support/calls/raw_client.h"
#include "tests/support/process/child_process.h"
#include "tests/support/process/daemon_process.h"
#include "tests/support/process/raw_socket.h"
#include "tests/support/process/temp_dir.h"

namespace rnicd::bench {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr uint64_t kKiB = 1024;
constexpr uint64_t kMiB = 1024 * kKiB;
constexpr int kFlooders = 8;
// Concurrent calls of one flooding process.
constexpr int kCallsAtOnce = 8;
constexpr int kTurns = 3;
constexpr milliseconds kTurn{1200};
// Time between the starts of two calls of the victim.
constexpr milliseconds kPace{2};
constexpr uint64_t kCallsPerSecond = 500;
constexpr uint64_t kFloodBytes = 16 * kMiB;

// --- the flood ---

void FloodCalls(const std::string& socket_dir) {
  test::RawClient client(socket_dir + "/rpc.sock");
  client.Call(&test::SessionStub::OpenSession, {});
  std::vector<std::thread> threads;
  for (int i = 0; i < kCallsAtOnce; ++i) {
    threads.emplace_back([&] {
      while (true) {
        client.Call(&test::SessionStub::GetSession, {});
      }
    });
  }
  threads[0].join();
}

void FloodRegistrations(const std::string& socket_dir) {
  while (true) {
    const auto client = Client::Connect({.socket_dir = socket_dir, .label = "flood"});
    const auto memory = client.ok() ? Memory::Allocate(*client, {.size = kFloodBytes}) : client.status();
    while (memory.ok() && MemoryRegion::Register(*memory, 0).ok()) {
    }
  }
}

void FloodConnections(const std::string& socket_dir) {
  while (true) {
    test::RawClient(socket_dir + "/rpc.sock").Call(&test::SessionStub::OpenSession, {});
  }
}

void StormTheDoor(const std::string& socket_dir) {
  while (true) {
    test::ConnectUnix(socket_dir + "/rpc.sock", SOCK_STREAM);
  }
}

int Flood(std::string_view kind, const std::string& socket_dir) {
  KeepTo(/*the_last_processor=*/true);
  if (kind == "calls") {
    FloodCalls(socket_dir);
  } else if (kind == "registrations") {
    FloodRegistrations(socket_dir);
  } else if (kind == "connections") {
    FloodConnections(socket_dir);
  } else {
    StormTheDoor(socket_dir);
  }
  return 0;
}

// --- the victim ---

struct Row {
  const char* name;
  // Bytes to register; 0 means QueryAdapterInfo.
  uint64_t bytes;
};
constexpr Row kRows[] = {{"RegisterMr + DeregisterMr, 64 KiB", 64 * kKiB},
                         {"RegisterMr + DeregisterMr, 1 MiB", kMiB},
                         {"QueryAdapterInfo", 0}};

// Microseconds of each call in one turn.
void Measure(const Client& client, const Memory& memory, const Row& row, std::vector<double>& times) {
  const auto end = Clock::now() + kTurn;
  for (auto next = Clock::now(); next < end; next = std::max(next + kPace, Clock::now())) {
    std::this_thread::sleep_until(next);
    const auto began = Clock::now();
    const absl::Status status = row.bytes == 0
                                    ? client.QueryAdapterInfo().status()
                                    : MemoryRegion::Register(memory, memory.bytes().first(row.bytes), 0).status();
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - began).count());
    if (!status.ok()) {
      std::fprintf(stderr, "the victim was refused: %s\n", status.ToString().c_str());
      std::exit(1);
    }
  }
}

// --- the run ---

// Two tenants, named by their roles. Without root both are the same user, and the figures mean little.
std::string PolicyText(bool limited) {
  const std::string flood = std::to_string(test::WorkloadUid());
  return "tenant { name: \"flood\" match { uid: " + flood + " } limits { memory_bytes: 1073741824 sessions: 512" +
         (limited ? " requests_per_second: " + std::to_string(kCallsPerSecond) : "") +
         " } }\ntenant { name: \"victim\" sharing: SHARING_EACH_UID }\ndefault_tenant: \"victim\"\n";
}

absl::Status RunOne(const std::string& kind, bool limited) {
  const auto directory = std::make_shared<test::TempDir>();
  const std::string policy = directory->path() + "/policy.textproto";
  std::ofstream(policy) << PolicyText(limited);
  RNICD_ASSIGN_OR_RETURN(
      const auto daemon,
      test::DaemonProcess::Start(
          {.flags = {"--provider=soft", "--policy_file=" + policy, "--log_level=warning"}, .directory = directory}));
  RNICD_ASSIGN_OR_RETURN(const Client client, Client::Connect({.socket_dir = daemon->socket_dir(), .label = "victim"}));
  RNICD_ASSIGN_OR_RETURN(const Memory memory, Memory::Allocate(client, {.size = kMiB}));
  Crowd flood(kFlooders, {"--role=" + kind, "--socket_dir=" + daemon->socket_dir()});
  std::this_thread::sleep_for(milliseconds(1000));
  for (const Row& row : kRows) {
    std::vector<double> alone;
    std::vector<double> beside;
    for (int turn = 0; turn < kTurns; ++turn) {
      flood.Pause();
      Measure(client, memory, row, alone);
      flood.Continue();
      Measure(client, memory, row, beside);
    }
    std::printf("| %s | %s | %s | %.0f | %.0f | %.2f | %.0f | %.0f | %.2f |\n", row.name, kind.c_str(),
                limited ? "on" : "off", Percentile(alone, 0.5), Percentile(beside, 0.5),
                Percentile(beside, 0.5) / Percentile(alone, 0.5), Percentile(alone, 0.99), Percentile(beside, 0.99),
                Percentile(beside, 0.99) / Percentile(alone, 0.99));
    std::fflush(stdout);
  }
  return absl::OkStatus();
}

// An empty `only` means every kind.
int Run(std::string_view only) {
  KeepTo(/*the_last_processor=*/false);
  std::printf(
      "| the victim calls | %d processes flood with | rate limit | p50 alone: us | p50 beside: us | ratio "
      "| p99 alone: us | p99 beside: us | ratio |\n|---|---|---|---:|---:|---:|---:|---:|---:|\n",
      kFlooders);
  for (const bool limited : {true, false}) {
    for (const char* kind : {"calls", "registrations", "connections", "storms"}) {
      if (!only.empty() && only != kind) {
        continue;
      }
      if (const absl::Status status = RunOne(kind, limited); !status.ok()) {
        std::fprintf(stderr, "rnicd_noisy_bench: %s\n", status.ToString().c_str());
        return 1;
      }
    }
  }
  return 0;
}

}  // namespace
}  // namespace rnicd::bench

int main(int argc, char** argv) {
  constexpr std::string_view kOnly = "--only=";
  const std::string_view role = argc > 1 ? argv[1] : "";
  const std::string_view socket_dir = argc > 2 ? argv[2] : "";
  constexpr std::string_view kRole = "--role=";
  constexpr std::string_view kSocketDir = "--socket_dir=";
  if (role.starts_with(kRole) && socket_dir.starts_with(kSocketDir)) {
    return rnicd::bench::Flood(role.substr(kRole.size()), std::string(socket_dir.substr(kSocketDir.size())));
  }
  return rnicd::bench::Run(role.starts_with(kOnly) ? role.substr(kOnly.size()) : "");
}
