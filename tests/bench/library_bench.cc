// Calls by librnicd, without rings.
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <sys/socket.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "client/cpp/channel/unix_socket_linux.h"
#include "client/cpp/client.h"
#include "client/cpp/memory.h"
#include "client/cpp/memory_region.h"
#include "client/cpp/session/connection.h"
#include "grpc/health/v1/health.pb.h"
#include "tests/bench/bench.h"

namespace rnicd::bench {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

constexpr Method<HealthCheckRequest, HealthCheckResponse> kCheck{"/grpc.health.v1.Health/Check"};
constexpr std::chrono::seconds kTimeout{30};

template <typename Value>
Value Must(absl::StatusOr<Value> value) {
  if (!value.ok()) {
    std::fprintf(stderr, "%s\n", value.status().ToString().c_str());
    std::abort();
  }
  return *std::move(value);
}

Client Connect(const test::DaemonProcess& daemon) {
  return Must(Client::Connect({.socket_dir = daemon.socket_dir(), .label = "bench", .data_path = DataPath::kCalls}));
}

// One connection's calls without arguments, and with a response of two bytes at most.
void EmptyLibraryCall(benchmark::State& state, const std::string& socket_path) {
  UniqueFd connected = Must(ConnectUnixSocket(socket_path, SOCK_STREAM, Instant::clock::now() + kTimeout));
  fcntl(connected.get(), F_SETFL, O_NONBLOCK);
  Channel channel(DaemonSocket{.socket = UniqueSocket(connected.Release()), .authorization = "", .pipe = nullptr});
  for (auto _ : state) {
    benchmark::DoNotOptimize(Must(client::Call(channel, kCheck, {}, kTimeout)));
  }
}

void RegisterByLibrary(benchmark::State& state, const test::DaemonProcess& daemon) {
  const Client client = Connect(daemon);
  const Memory memory = Must(Memory::Allocate(client, {.size = kNdkPageBytes}));
  const MemoryRegion region = Must(MemoryRegion::Register(memory, 0));
  const MdlEntry entry = Must(memory.Entry(memory.bytes()));
  Connection& connection = *client.connection();
  v1::DeregisterMrRequest deregister_request;
  deregister_request.set_mr_id(region.id().value);
  v1::RegisterMrRequest register_request;
  register_request.set_mr_id(region.id().value);
  register_request.set_length(entry.byte_count);
  v1::MdlEntry* const part = register_request.add_mdl_chain();
  part->set_memory_id(entry.memory_id.value);
  part->set_byte_count(entry.byte_count);
  part->set_virtual_address(entry.virtual_address.value);
  for (auto _ : state) {
    benchmark::DoNotOptimize(Must(connection.Call(kDeregisterMr, deregister_request)));
    benchmark::DoNotOptimize(Must(connection.Call(kRegisterMr, register_request)));
  }
}

void FirstByte(benchmark::State& state, const test::DaemonProcess& daemon) {
  for (auto _ : state) {
    const Client client = Connect(daemon);
    const Memory memory = Must(Memory::Allocate(client, {.size = kNdkPageBytes}));
    const MemoryRegion region = Must(MemoryRegion::Register(memory, 0));
    state.PauseTiming();
    benchmark::DoNotOptimize(region.local_token());
    state.ResumeTiming();
  }
}

}  // namespace

void AddLibraryRows(const test::DaemonProcess& daemon, const BareEcho& echo) {
  const auto add = [](const char* name, auto run) { benchmark::RegisterBenchmark(name, run)->UseRealTime(); };
  add("library/bare_echo", [&echo](benchmark::State& state) { EmptyLibraryCall(state, echo.socket_path()); });
  add("library/empty_call", [&daemon](benchmark::State& state) { EmptyLibraryCall(state, daemon.admin_socket()); });
  add("library/register_deregister", [&daemon](benchmark::State& state) { RegisterByLibrary(state, daemon); });
  add("library/first_byte", [&daemon](benchmark::State& state) { FirstByte(state, daemon); });
}

}  // namespace rnicd::bench
