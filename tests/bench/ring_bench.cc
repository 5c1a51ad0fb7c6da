// rnicd_ring_bench: what work requests and registrations cost a client of librnicd, by calls and through rings.
//
// usage: rnicd_ring_bench one|two [ROW]   single requests: everything on one core without spinning; or the client on
//                                         core 0, the daemon on core 1, both spinning. ROW: only that one, for a
//                                         profile
//        rnicd_ring_bench live            the same with a thousand and a million live regions
//        rnicd_ring_bench crowd           64 clients at once on all cores
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tests/bench/echo_server.h"
#include "tests/bench/ring_bench.h"
#include "tests/bench/ring_turns.h"
#include "tests/bench/ring_user.h"
#include "tests/bench/ring_wakeups.h"

namespace rnicd::bench {
namespace {

constexpr int kTurns = 40;
// For a single row: long enough for a profile.
constexpr int kProfileTurns = 2000;
constexpr char kPingPong[] = "P: plain Unix-socket ping-pong, 64 bytes";

void AddRows(RingUser& user, bool rings, std::vector<TimedRow>* rows) {
  const std::string by = rings ? ", ring" : ", calls";
  const int steps = rings ? 100 : 20;
  rows->push_back({"FastRegister or Invalidate, posted and polled" + by,
                   [&user](int call) { user.FastRegisterAndPoll(call); }, 1, steps});
  rows->push_back(
      {"chain of 64 of them, each" + by, [&user](int call) { user.PostChain(call); }, kRingChain, steps / 2});
  rows->push_back({"write of 64 bytes, posted and polled" + by, [&user](int) { user.WriteAndPoll(); }, 1, steps});
  if (rings) {
    rows->push_back(
        {"RegisterMr + DeregisterMr, 4 KiB, ring", [&user](int) { user.RegisterAndDeregister(); }, 1, steps});
    rows->push_back({"GetRemoteToken, ring", [&user](int) { user.GetRemoteToken(); }, 1, steps});
  }
}

// A user of their own: silent requests of other rows count as outstanding.
void AddStreams(RingUser& user, std::vector<TimedRow>* rows) {
  constexpr int kCount = 512;
  const auto add = [&](const char* name, const RingUser::Stream& stream) {
    rows->push_back({name, [&user, stream](int) { user.WriteStream(stream); }, kCount, 10});
  };
  rows->push_back({"write without outcome, posted and polled", [&user](int) { user.WriteWithoutOutcomeAndPoll(); }});
  add("stream of them, 64 outstanding, each", {.count = kCount, .outstanding = 64});
  add("the same in chains of 16, each", {.count = kCount, .chain = 16, .outstanding = 64});
  add("posts of one, 1 in 16 completes, each", {.count = kCount, .outstanding = 1024, .silent = true});
}

void Print(const TimedRow& row, const Figures& figures, double ping_pong) {
  std::printf("| %-52s | %8.2f | %8.2f | %6.2f |\n", row.name.c_str(), figures.median, figures.p99,
              figures.median / ping_pong);
}

int SingleRequests(Cores cores, std::string_view only) {
  const bool one_core = cores == Cores::kOne;
  // The processes of the first two rows keep the core on which they start.
  Pin(one_core ? 0 : 1);
  const UniqueFd echo = StartEchoServer();
  BareWakeups wakeups;
  const auto daemon = StartDaemon(cores);
  RingUser by_calls(daemon->socket_dir(), DataPath::kCalls, SpinOf(cores));
  RingUser by_rings(daemon->socket_dir(), DataPath::kRings, SpinOf(cores));
  std::vector<TimedRow> rows = {{kPingPong, [&echo](int) { PingPong(echo.get()); }}};
  rows.push_back({"a ring's wake-ups alone", [&wakeups](int) { wakeups.RoundTrip(); }});
  AddRows(by_calls, false, &rows);
  AddRows(by_rings, true, &rows);
  RingUser streams(daemon->socket_dir(), DataPath::kRings, SpinOf(cores));
  AddStreams(streams, &rows);
  if (!only.empty()) {
    std::erase_if(rows, [only](const TimedRow& row) { return row.name != only; });
  }
  const std::vector<Figures> figures = TimeInTurns(rows, only.empty() ? kTurns : kProfileTurns);
  std::printf("| %-52s | %8s | %8s | %6s |\n|---|---:|---:|---:|\n", TitleOf(cores), "us, p50", "p99", "x P");
  for (size_t index = 0; index < rows.size(); ++index) {
    Print(rows[index], figures[index], figures.front().median);
  }
  return 0;
}

}  // namespace
}  // namespace rnicd::bench

int main(int argc, char** argv) {
  using rnicd::bench::Cores;
  const std::string_view what = argc > 1 ? argv[1] : "";
  const std::string_view argument = argc > 2 ? argv[2] : "";
  if (what == "one" || what == "two") {
    return rnicd::bench::SingleRequests(what == "one" ? Cores::kOne : Cores::kTwo, argument);
  }
  if (what == "live") {
    return rnicd::bench::LiveRegions();
  }
  if (what == "crowd") {
    return rnicd::bench::Crowd();
  }
  if (what == "member") {
    return rnicd::bench::CrowdMember(std::string(argument));
  }
  std::fprintf(stderr, "usage: rnicd_ring_bench one|two [ROW] | live | crowd\n");
  return 2;
}
