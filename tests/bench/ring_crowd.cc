// How the rings of many clients share the daemon, against one client alone.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "tests/bench/ring_bench.h"
#include "tests/bench/ring_turns.h"
#include "tests/bench/ring_user.h"
#include "tests/support/process/child_process.h"

namespace rnicd::bench {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;

constexpr size_t kMembers = 64;
constexpr int kCrowdTurns = 5;
// All clients count what they complete in the same window, which begins when all of them know it.
constexpr std::chrono::milliseconds kLead{100};
constexpr std::chrono::milliseconds kWindow{1500};
// Until the child was scheduled beside all others.
constexpr std::chrono::minutes kAnswerMax{2};

// Steps of one kind until `end`, of which those count that began at `begin` or later.
template <typename Step>
int StepsBetween(Clock::time_point begin, Clock::time_point end, const Step& step) {
  int counted = 0;
  for (int round = 0;; ++round) {
    const Clock::time_point now = Clock::now();
    // An even number, so that what is registered is invalidated.
    if (now >= end && round % 2 == 0) {
      return counted;
    }
    step(round);
    counted += now >= begin && now < end ? 1 : 0;
  }
}

class Members {
 public:
  explicit Members(const std::string& socket_dir) {
    const std::string program = std::filesystem::read_symlink("/proc/self/exe");
    for (size_t index = 0; index < kMembers; ++index) {
      processes_.push_back(Must(test::ChildProcess::Start({.command = {program, "member", socket_dir}})));
      Answer(*processes_.back());
    }
  }

  // Requests of each of the first `count` members in the window, while the others sleep.
  std::vector<double> Count(const std::string& kind, size_t count) {
    const Clock::time_point begin = Clock::now() + kLead;
    std::ostringstream line;
    line << kind << " " << begin.time_since_epoch().count();
    for (size_t index = 0; index < count; ++index) {
      processes_[index]->WriteLine(line.str());
    }
    std::vector<double> requests;
    for (size_t index = 0; index < count; ++index) {
      requests.push_back(std::stod(Answer(*processes_[index])));
    }
    return requests;
  }

 private:
  static std::string Answer(test::ChildProcess& process) {
    const auto line = process.output().NextLine(kAnswerMax);
    if (!line.has_value()) {
      Fail(absl::InternalError("a client has ended: " + process.errors().Text()));
    }
    return *line;
  }

  std::vector<std::unique_ptr<test::ChildProcess>> processes_;
};

double Sum(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

void Compare(Members& members, const std::string& kind, const char* title) {
  std::vector<double> alone;
  std::vector<double> together;
  std::vector<double> ratio;
  std::vector<double> slowest;
  const double seconds = std::chrono::duration<double>(kWindow).count();
  for (int turn = 0; turn < kCrowdTurns; ++turn) {
    const double one = Sum(members.Count(kind, 1));
    const std::vector<double> all = members.Count(kind, kMembers);
    alone.push_back(one / seconds / 1e6);
    together.push_back(Sum(all) / seconds / 1e6);
    ratio.push_back(Sum(all) / one);
    slowest.push_back(std::ranges::min(all) * kMembers / Sum(all));
  }
  std::printf("| %s | %.3f | %.3f | %.2f | %.2f |\n", title, MedianOf(alone), MedianOf(together), MedianOf(ratio),
              MedianOf(slowest));
  std::fflush(stdout);
}

}  // namespace

int Crowd() {
  const auto daemon = StartDaemon(std::vector<std::string>{});
  Members members(daemon->socket_dir());
  std::printf(
      "| all cores, the daemon's defaults | 1 client: M/s | 64 clients: M/s | ratio | slowest / mean "
      "|\n|---|---:|---:|---:|---:|\n");
  Compare(members, "single", "FastRegister or Invalidate, posted and polled one by one");
  Compare(members, "chain", "FastRegister or Invalidate in chains of 64");
  return 0;
}

// Reads "KIND BEGIN" and answers with the number of requests in the window, until its input ends.
int CrowdMember(const std::string& socket_dir) {
  RingUser user(socket_dir, DataPath::kRings, ClientOptions{}.spin_max);
  std::cout << "ready" << std::endl;
  std::string kind;
  for (int64_t at = 0; std::cin >> kind >> at;) {
    const Clock::time_point begin{nanoseconds(at)};
    const Clock::time_point end = begin + kWindow;
    const int requests = kind == "single"
                             ? StepsBetween(begin, end, [&user](int round) { user.FastRegisterAndPoll(round); })
                             : kRingChain * StepsBetween(begin, end, [&user](int round) { user.PostChain(round); });
    std::cout << requests << std::endl;
  }
  return 0;
}

}  // namespace rnicd::bench
