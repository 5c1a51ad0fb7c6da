// Whether a fast registration by ring slows down when the daemon holds a million of them instead of a thousand.
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "tests/bench/ring_bench.h"
#include "tests/bench/ring_turns.h"
#include "tests/bench/ring_user.h"

namespace rnicd::bench {
namespace {

constexpr int kLiveTurns = 40;
constexpr size_t kFew = 1000;
constexpr size_t kMany = 1000000;

// A daemon of its own for each number of regions, so that the two can alternate.
struct Side {
  Side(Cores cores, size_t regions)
      : daemon(StartDaemon(cores)), user(daemon->socket_dir(), DataPath::kRings, SpinOf(cores)) {
    user.GrowLiveRegions(regions);
  }

  std::unique_ptr<test::DaemonProcess> daemon;
  RingUser user;
};

void Compare(Cores cores) {
  Side few(cores, kFew);
  Side many(cores, kMany);
  const std::vector<Figures> figures = TimeInTurns({{"few", [&few](int) { few.user.RegisterAgainAndPoll(); }},
                                                    {"many", [&many](int) { many.user.RegisterAgainAndPoll(); }}},
                                                   kLiveTurns);
  std::printf("| %s | %.2f | %.2f | %.2f |\n", TitleOf(cores), figures[0].median, figures[1].median,
              figures[1].median / figures[0].median);
  std::fflush(stdout);
}

}  // namespace

int LiveRegions() {
  std::printf(
      "| Invalidate + FastRegister of a region drawn at random, ring | 1,000 live: us, p50 | 1,000,000: us, p50 "
      "| ratio |\n|---|---:|---:|---:|\n");
  Compare(Cores::kOne);
  Compare(Cores::kTwo);
  return 0;
}

}  // namespace rnicd::bench
