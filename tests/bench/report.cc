#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "tests/bench/bench.h"
#include "tests/support/admin_client.h"
#include "tests/support/test_session.h"

namespace rnicd::bench {
namespace {

using test::MemoryStub;
using test::TestSession;

constexpr int kLoops = 100;
constexpr int kRoundsPerLoop = 100;
constexpr uint64_t kIdleRegions = 100000;
constexpr uint64_t kIdleBatch = 10000;

double MedianMicroseconds(std::vector<double> rounds) {
  std::nth_element(rounds.begin(), rounds.begin() + rounds.size() / 2, rounds.end());
  return rounds[rounds.size() / 2];
}

// Whether register and deregister slow down over time: the last loop compared with the first.
void PrintDrift(test::DaemonProcess& daemon) {
  TestSession session(daemon, "drift");
  const uint64_t memory = session.SealedMemory(4 * kKiB);
  const uint64_t region = session.CreateMr();
  const auto request = test::RegisterRequest(region, {test::MdlEntry(memory, 0, 4 * kKiB, kBase)}, 4 * kKiB);
  v1::DeregisterMrRequest deregister;
  deregister.set_mr_id(region);
  std::vector<double> medians;
  for (int loop = 0; loop < kLoops; ++loop) {
    std::vector<double> rounds;
    for (int round = 0; round < kRoundsPerLoop; ++round) {
      const auto before = std::chrono::steady_clock::now();
      session.Call(&MemoryStub::RegisterMr, request);
      session.Call(&MemoryStub::DeregisterMr, deregister);
      rounds.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - before).count());
    }
    medians.push_back(MedianMicroseconds(rounds));
  }
  std::printf("drift/first_loop_us %.1f\n", medians.front());
  std::printf("drift/last_loop_us %.1f\n", medians.back());
  std::printf("drift/last_to_first %.2f\n", medians.back() / medians.front());
}

// The daemon's memory per registered, unused region.
void PrintMemoryPerRegion(test::DaemonProcess& daemon) {
  TestSession session(daemon, "idle");
  const uint64_t memory = session.SealedMemory(4 * kKiB);
  const uint64_t before = AdminStatus(daemon).resident_bytes();
  for (uint64_t done = 0; done < kIdleRegions; done += kIdleBatch) {
    v1::BatchCreateMrRequest creates;
    for (uint64_t index = 0; index < kIdleBatch; ++index) {
      creates.add_items()->set_pd_id(session.pd_id());
    }
    const auto created = session.Call(&MemoryStub::BatchCreateMr, creates);
    v1::BatchRegisterMrRequest registers;
    for (const v1::CreateMrOutcome& outcome : created.response.outcomes()) {
      *registers.add_items() =
          test::RegisterRequest(outcome.response().mr_id(), {test::MdlEntry(memory, 0, 4 * kKiB, kBase)}, 4 * kKiB);
    }
    session.Call(&MemoryStub::BatchRegisterMr, registers);
  }
  const auto status = AdminStatus(daemon);
  std::printf("memory/regions %llu\n", static_cast<unsigned long long>(status.device_regions()));
  std::printf("memory/bytes_per_region %.0f\n",
              static_cast<double>(status.resident_bytes() - before) / static_cast<double>(kIdleRegions));
}

}  // namespace

void PrintReport(test::DaemonProcess& daemon) {
  PrintDrift(daemon);
  PrintMemoryPerRegion(daemon);
  PrintLiveReport(daemon);
}

}  // namespace rnicd::bench
