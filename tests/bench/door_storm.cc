// A victim that again and again connects, makes one cheap call and leaves; and fifty processes of another user that
// only connect and leave, as fast as they can.
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <thread>
#include <utility>
#include <vector>

#include "base/files/unique_fd.h"
#include "tests/bench/crowd.h"
#include "tests/bench/door_bench.h"
#include "tests/integration/raw_call.h"
#include "tests/support/admin_client.h"
#include "tests/support/calls/rpcs.h"
#include "tests/support/process/processor_time.h"

namespace rnicd::bench {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr int kCrowd = 50;
constexpr int kTurns = 8;
constexpr milliseconds kTurn{1000};
// Time between the starts of two attempts of the victim: below the daemon's --connections_per_second.
constexpr milliseconds kPace{5};
// Between a connect that found the queue full and the next one.
constexpr milliseconds kRetry{2};
constexpr char kSocket[] = "rpc.sock";
// After this an attempt has failed.
constexpr milliseconds kGiveUp{5000};

sockaddr_un AddressOf(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  return address;
}

// False, with EAGAIN, while the queue is full, or once a blocking connect has waited long enough.
bool Connects(int socket_fd, const sockaddr_un& address) {
  return connect(socket_fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
}

// --- the victim ---

struct Attempts {
  // Percentiles of each turn, from the first connect to the response, in microseconds.
  std::vector<double> p50;
  std::vector<double> p99;
  // Connects, and those that found a place in the queue.
  uint64_t tried = 0;
  uint64_t served = 0;
};

// A connect that does not block: gRPC's is the same.
UniqueFd ConnectRetrying(const sockaddr_un& address, Attempts& attempts) {
  for (const auto end = Clock::now() + kGiveUp; Clock::now() < end; std::this_thread::sleep_for(kRetry)) {
    UniqueFd connection(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    ++attempts.tried;
    if (Connects(connection.get(), address)) {
      return connection;
    }
  }
  return UniqueFd();
}

void MeasureTurn(const std::string& path, Attempts& attempts) {
  const sockaddr_un address = AddressOf(path);
  std::vector<double> times;
  const auto end = Clock::now() + kTurn;
  for (auto next = Clock::now(); next < end; next = std::max(next + kPace, Clock::now())) {
    std::this_thread::sleep_until(next);
    const auto began = Clock::now();
    const UniqueFd connection = ConnectRetrying(address, attempts);
    if (connection.valid() && test::CallOn(connection.get(), test::AdapterStub::ListAdapters.path)) {
      ++attempts.served;
      times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - began).count());
    }
  }
  if (!times.empty()) {
    attempts.p50.push_back(Percentile(times, 0.5));
    attempts.p99.push_back(Percentile(times, 0.99));
  }
}

// --- the run ---

struct Place {
  const char* name;
  std::string directory;
};

struct Row {
  Place storm;
  Place victim;
  bool crowd_blocks;
};

double SharePercent(milliseconds used, Clock::duration elapsed) {
  return 100 * std::chrono::duration<double>(used).count() / std::chrono::duration<double>(elapsed).count();
}

void PrintHeading() {
  std::printf(
      "%d processes connect and leave. Times in microseconds from connect to response, processor time in percent of "
      "one "
      "processor.\n\n"
      "| storm at | victim at | the storm's connects | served of tried | p50 | p99 | p99, ratio to "
      "quiet "
      "| the storm's time | the daemon's |\n"
      "|---|---|---|---:|---:|---:|---:|---:|---:|\n",
      kCrowd);
}

void PrintRow(const Row& row, const Attempts& quiet, const Attempts& beside, double crowd, double daemon) {
  std::printf("| %s | %s | %s | %lu of %lu |", row.storm.name, row.victim.name, row.crowd_blocks ? "block" : "do not",
              beside.served, beside.tried);
  if (beside.p50.empty() || quiet.p50.empty()) {
    std::printf(" | | |");
  } else {
    // Medians of the turns: a moment in which the machine is busy with something else spoils one turn only.
    const double p99 = Percentile(beside.p99, 0.5);
    std::printf(" %.0f | %.0f | %.2f |", Percentile(beside.p50, 0.5), p99, p99 / Percentile(quiet.p99, 0.5));
  }
  std::printf(" %.0f | %.0f |\n", crowd, daemon);
  (void)std::fflush(stdout);
}

// Quiet and storm alternate, so that what else the machine does meets both alike. The crowd's processes are in the
// socket's directory as in a container that has it mounted: they could not reach a door by its path.
void Run(test::DaemonProcess& daemon, const Row& row, const StormOptions& options) {
  std::filesystem::current_path(row.storm.directory);
  std::vector<std::string> arguments = {"--role=storm", kSocket, row.crowd_blocks ? "blocking" : "spinning"};
  if (options.spread) {
    arguments.emplace_back("--spread");
  }
  Crowd crowd(kCrowd, arguments);
  Attempts quiet;
  Attempts beside;
  milliseconds crowd_time{0};
  milliseconds daemon_time{0};
  Clock::duration elapsed{0};
  for (int turn = 0; turn < kTurns; ++turn) {
    crowd.Pause();
    MeasureTurn(row.victim.directory + "/" + kSocket, quiet);
    crowd.Continue();
    const auto began = Clock::now();
    const milliseconds crowd_before = crowd.ProcessorTime();
    const milliseconds daemon_before = test::ProcessorTimeOf(daemon.process().pid());
    MeasureTurn(row.victim.directory + "/" + kSocket, beside);
    crowd_time += crowd.ProcessorTime() - crowd_before;
    daemon_time += test::ProcessorTimeOf(daemon.process().pid()) - daemon_before;
    elapsed += Clock::now() - began;
    crowd.MustRun();
  }
  PrintRow(row, quiet, beside, SharePercent(crowd_time, elapsed), SharePercent(daemon_time, elapsed));
}

}  // namespace

void Storm(const std::string& socket_path, bool blocking, const StormOptions& options) {
  if (!options.spread) {
    KeepTo(/*the_last_processor=*/true);
  }
  const sockaddr_un address = AddressOf(socket_path);
  while (true) {
    const UniqueFd connection(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | (blocking ? 0 : SOCK_NONBLOCK), 0));
    if (!Connects(connection.get(), address) && errno != EAGAIN) {
      std::perror("connect");
      std::exit(1);
    }
  }
}

void PrintStorms(const StormOptions& options) {
  if (!options.spread) {
    KeepTo(/*the_last_processor=*/false);
  }
  const auto daemon = Must(test::DaemonProcess::Start({.flags = {"--provider=soft", "--log_level=error"}}));
  const Place shared = {"the shared socket", daemon->socket_dir()};
  const Place own = {"its own door", MakeGrant(*daemon, "victim", true).socket_dir()};
  const Place neighbour = {"a neighbour's door", MakeGrant(*daemon, "neighbour", true).socket_dir()};
  PrintHeading();
  for (const auto& [storm, victim] : {std::pair(shared, shared), std::pair(shared, own), std::pair(neighbour, own)}) {
    for (const bool crowd_blocks : {true, false}) {
      Run(*daemon, {storm, victim, crowd_blocks}, options);
    }
  }
}

}  // namespace rnicd::bench
