// rnicd_ring_bench: what work requests and registrations cost a client of librnicd, by calls and through rings.
//
// Each row is timed one by one, so that there are percentiles, and beside a plain socket ping-pong of the same minute.
// usage: rnicd_ring_bench one|two    everything on one core without spinning; or the client on core 0, the daemon on 1,
//                                    both spinning
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/access_rights.h"
#include "base/op_flags.h"
#include "base/status.h"
#include "client/cpp/client.h"
#include "client/cpp/connection.h"
#include "client/cpp/fast_region.h"
#include "client/cpp/logical_mapping.h"
#include "client/cpp/memory.h"
#include "client/cpp/memory_region.h"
#include "client/cpp/queue_pair.h"
#include "tests/bench/echo_server.h"
#include "tests/support/daemon_process.h"

namespace rnicd::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kChain = 64;
constexpr int kRounds = 4000;
constexpr int kWarmUp = 200;

void Pin(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  sched_setaffinity(0, sizeof(set), &set);
}

template <typename T>
T Must(absl::StatusOr<T> outcome) {
  if (!outcome.ok()) {
    std::fprintf(stderr, "rnicd_ring_bench: %s\n", std::string(outcome.status().message()).c_str());
    std::exit(1);
  }
  return *std::move(outcome);
}
void Must(const absl::Status& status) { (void)Must(status.ok() ? absl::StatusOr<int>(0) : status); }

struct Figures {
  double median = 0;
  double p99 = 0;
};

Figures Measure(int rounds, const std::function<void(int round)>& step) {
  for (int round = 0; round < kWarmUp; ++round) {
    step(round);
  }
  std::vector<double> times;
  times.reserve(static_cast<size_t>(rounds));
  for (int round = 0; round < rounds; ++round) {
    const Clock::time_point begin = Clock::now();
    step(round);
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
  }
  std::sort(times.begin(), times.end());
  return {.median = times[times.size() / 2], .p99 = times[times.size() * 99 / 100]};
}

// A client with a queue pair that is connected to itself, a mapping, and fast regions.
class Bench {
 public:
  Bench(const test::DaemonProcess& daemon, DataPath path, std::chrono::microseconds spin)
      : client_(Must(Client::Connect(
            {.socket_dir = daemon.socket_dir(), .label = "bench", .data_path = path, .spin_max = spin}))),
        memory_(Must(Memory::Allocate(client_, {.size = 1 << 20}))),
        mapping_(Must(LogicalMapping::Build(memory_))),
        region_(Must(MemoryRegion::Register(memory_, kMrFlagRemoteWrite))),
        small_(Must(MemoryRegion::Register(memory_, memory_.bytes().first(4096), kMrFlagRemoteWrite))),
        queue_(Must(CompletionQueue::Create(client_, 1024))),
        pair_(Must(QueuePair::Create(queue_, queue_, {.initiator_queue_depth = 1024}))) {
    Must(pair_.Connect(pair_.address()));
    for (int index = 0; index < kChain; ++index) {
      fast_.push_back(Must(FastRegion::Create(client_, {.max_pages = 1, .remote_access = true})));
    }
  }

  // A FastRegister, or its Invalidate, posted; its completion polled.
  void FastRegisterAndPoll(int round) {
    WorkChain chain;
    Add(round, fast_.front(), 0, &chain);
    Post(chain);
    AwaitCompletions(1);
  }
  void ChainOfFastRegisters(int round) {
    WorkChain chain;
    for (const FastRegion& region : fast_) {
      Add(round, region, kOpFlagSilentSuccess, &chain);
    }
    Post(chain);
  }
  void WriteAndPoll(int /*round*/) {
    Post(WorkChain().Write(
        {Sge::Of(memory_.bytes().first(64), region_.local_token())},
        {.address = {reinterpret_cast<uintptr_t>(memory_.bytes().data()) + 4096}, .token = region_.remote_token()},
        {}));
    AwaitCompletions(1);
  }
  // 4 KiB; through the ring alone, since librnicd makes a region for each registration.
  void RegisterAndDeregister(int /*round*/) {
    RingPath& rings = client_.connection()->rings();
    Must(*rings.Deregister(small_.id()));
    const MdlEntry entry = Must(memory_.Entry(memory_.bytes().first(4096)));
    Must(rings.Register(small_.id(), {&entry, 1}, 4096, kMrFlagRemoteWrite)->status());
  }

 private:
  void Add(int round, const FastRegion& region, uint32_t flags, WorkChain* chain) const {
    if (round % 2 == 0) {
      chain->FastRegister(region,
                          {.pages = {mapping_.pages().front()}, .length = 4096, .base_address = {uint64_t{1} << 32}},
                          {.flags = flags | kOpFlagRemoteWrite});
    } else {
      chain->Invalidate(region, {.flags = flags});
    }
  }
  void Post(const WorkChain& chain) { Must(Must(pair_.Post(chain)).failure); }
  void AwaitCompletions(size_t count) {
    for (size_t seen = 0; seen < count;) {
      for (const Completion& completion : Must(queue_.PollFor(16, std::chrono::seconds(10)))) {
        seen += completion.ok() ? 1 : 0;
      }
    }
  }

  Client client_;
  Memory memory_;
  LogicalMapping mapping_;
  MemoryRegion region_;
  MemoryRegion small_;
  CompletionQueue queue_;
  QueuePair pair_;
  std::vector<FastRegion> fast_;
};

void Print(std::string_view row, const Figures& figures, double ping_pong, int requests = 1) {
  std::printf("| %-52s | %8.2f | %8.2f | %6.2f |\n", std::string(row).c_str(), figures.median / requests,
              figures.p99 / requests, figures.median / requests / ping_pong);
}

int Run(bool one_core, int ping_pong_socket) {
  Pin(one_core ? 0 : 1);
  const auto daemon = test::DaemonProcess::Start(
      {.flags = {"--pending_threshold_bytes=9000000000000000000", "--log_level=warning",
                 one_core ? "--ring_spin_us=0" : "--ring_spin_us=200", "--ring_spin_percent=100"}});
  Must(daemon.status());
  Pin(0);
  const auto ping_pong = [&] { return Measure(kRounds, [&](int) { PingPong(ping_pong_socket); }); };
  const Figures unit = ping_pong();
  std::printf("| %-52s | %8s | %8s | %6s |\n|---|---:|---:|---:|\n",
              one_core ? "one core, nobody spins" : "client and daemon on a core each, both spin", "us, p50", "p99",
              "x P");
  Print("P: plain Unix-socket ping-pong, 64 bytes", unit, unit.median);
  const std::chrono::microseconds spin(one_core ? 0 : 200);
  for (const DataPath path : {DataPath::kCalls, DataPath::kRings}) {
    const bool rings = path == DataPath::kRings;
    const std::string by = rings ? ", ring" : ", calls";
    const int rounds = rings ? kRounds : kRounds / 4;
    Bench bench(**daemon, path, spin);
    Print("FastRegister or Invalidate, posted and polled" + by,
          Measure(rounds, [&](int round) { bench.FastRegisterAndPoll(round); }), unit.median);
    Print("chain of 64 of them, each" + by, Measure(rounds / 4, [&](int round) { bench.ChainOfFastRegisters(round); }),
          unit.median, kChain);
    Print("write of 64 bytes, posted and polled" + by, Measure(rounds, [&](int round) { bench.WriteAndPoll(round); }),
          unit.median);
    if (rings) {
      Print("RegisterMr + DeregisterMr, 4 KiB" + by,
            Measure(rounds, [&](int round) { bench.RegisterAndDeregister(round); }), unit.median);
    }
  }
  Print("P again", ping_pong(), unit.median);
  return 0;
}

}  // namespace
}  // namespace rnicd::bench

int main(int argc, char** argv) {
  const std::string_view cores = argc == 2 ? argv[1] : "";
  if (cores != "one" && cores != "two") {
    std::fprintf(stderr, "usage: rnicd_ring_bench one|two\n");
    return 2;
  }
  // The echo process keeps the core on which it starts.
  rnicd::bench::Pin(cores == "one" ? 0 : 1);
  const rnicd::UniqueFd echo = rnicd::bench::StartEchoServer();
  return rnicd::bench::Run(cores == "one", echo.get());
}
