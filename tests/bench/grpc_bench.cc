#include <benchmark/benchmark.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/bench/bench.h"
#include "tests/bench/echo_server.h"
#include "tests/support/test_session.h"

namespace rnicd::bench {
namespace {

using test::MemoryStub;
using test::TestSession;

// One session with one memory object and one region over all of it.
struct GrpcClient {
  GrpcClient(test::DaemonProcess& daemon, uint64_t bytes) : session(daemon, "bench") {
    const uint64_t memory = session.SealedMemory(bytes);
    const uint64_t region = session.CreateMr();
    register_request = test::RegisterRequest(region, {test::MdlEntry(memory, 0, bytes, kBase)}, bytes);
    deregister_request.set_mr_id(region);
  }

  bool RegisterDeregister() {
    return session.Call(&MemoryStub::RegisterMr, register_request).ok() &&
           session.Call(&MemoryStub::DeregisterMr, deregister_request).ok();
  }

  TestSession session;
  v1::RegisterMrRequest register_request;
  v1::DeregisterMrRequest deregister_request;
};

void RegisterDeregister(benchmark::State& state, test::DaemonProcess& daemon) {
  GrpcClient client(daemon, static_cast<uint64_t>(state.range(0)));
  for (auto _ : state) {
    if (!client.RegisterDeregister()) {
      state.SkipWithError("refused");
      return;
    }
  }
}

// One connection's calls without arguments, and with a response of two bytes at most.
void EmptyCall(benchmark::State& state, const std::string& socket_path) {
  test::RawClient client(socket_path);
  for (auto _ : state) {
    if (!client.Call(&test::HealthStub::Check, {}).ok()) {
      state.SkipWithError("refused");
      return;
    }
  }
}

void Batch(benchmark::State& state, test::DaemonProcess& daemon) {
  TestSession session(daemon, "bench");
  const uint64_t memory = session.SealedMemory(kBatchRegions * kBatchRegionBytes);
  v1::BatchRegisterMrRequest registers;
  v1::BatchDeregisterMrRequest deregisters;
  for (uint64_t index = 0; index < kBatchRegions; ++index) {
    const uint64_t region = session.CreateMr();
    const uint64_t offset = index * kBatchRegionBytes;
    *registers.add_items() = test::RegisterRequest(
        region, {test::MdlEntry(memory, offset, kBatchRegionBytes, kBase + offset)}, kBatchRegionBytes);
    deregisters.add_items()->set_mr_id(region);
  }
  for (auto _ : state) {
    benchmark::DoNotOptimize(session.Call(&MemoryStub::BatchRegisterMr, registers).ok());
    state.PauseTiming();
    benchmark::DoNotOptimize(session.Call(&MemoryStub::BatchDeregisterMr, deregisters).ok());
    state.ResumeTiming();
  }
}

}  // namespace

void AddPingPongRow(int echo_socket) {
  benchmark::RegisterBenchmark("unix/ping_pong", [echo_socket](benchmark::State& state) {
    for (auto _ : state) {
      benchmark::DoNotOptimize(PingPong(echo_socket));
    }
  })->UseRealTime();
}

void AddGrpcRows(test::DaemonProcess& daemon) {
  const auto with = [&daemon](void (*run)(benchmark::State&, test::DaemonProcess&)) {
    return [run, &daemon](benchmark::State& state) { run(state, daemon); };
  };
  benchmark::RegisterBenchmark("grpc/empty_call", [&daemon](benchmark::State& state) {
    EmptyCall(state, daemon.admin_socket());
  })->UseRealTime();
  auto* sizes = benchmark::RegisterBenchmark("grpc/register_deregister", with(RegisterDeregister))->UseRealTime();
  for (const int64_t size : kSizes) {
    sizes->Arg(size);
  }
  benchmark::RegisterBenchmark("grpc/register_1265_of_40KiB", with(Batch))->UseRealTime();
  for (const int clients : {1, 4, 64}) {
    benchmark::RegisterBenchmark("grpc/clients", with(RegisterDeregister))
        ->Arg(4 * kKiB)
        ->Threads(clients)
        ->UseRealTime();
  }
}

}  // namespace rnicd::bench
