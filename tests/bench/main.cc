// rnicd_bench: Google Benchmark's own flags, and --report for drift and memory instead of the rows. It also starts
// itself as the server of bare_echo.h.

#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstring>

#include "tests/bench/bare_echo.h"
#include "tests/bench/bench.h"
#include "tests/bench/echo_server.h"

int main(int argc, char** argv) {
  using rnicd::bench::BareEcho;
  rnicd::bench::RunBareEchoIfAsked(argc, argv);
  const rnicd::UniqueFd echo = rnicd::bench::StartEchoServer();
  benchmark::Initialize(&argc, argv);
  // No request pends, so that every row measures the whole operation; and connects are not limited.
  auto daemon = rnicd::test::DaemonProcess::Start(
      {.flags = {"--pending_threshold_bytes=9000000000000000000", "--log_level=warning", "--max_heap_bytes=0",
                 "--connections_per_second=0",
                 rnicd::test::LimitsFlag("session_limits { regions: 1000000000 } connections { listen { prefix: '::/0' "
                                         "first_port: 49152 last_port: 65535 } }")}});
  const auto bare_echo = BareEcho::Start();
  if (!echo.valid() || !daemon.ok() || !bare_echo.ok()) {
    std::fprintf(stderr, "rnicd_bench: cannot start: %s %s\n", daemon.status().ToString().c_str(),
                 bare_echo.status().ToString().c_str());
    return 1;
  }
  if (argc == 2 && std::strcmp(argv[1], "--report") == 0) {
    rnicd::bench::PrintReport(**daemon);
    return 0;
  }
  rnicd::bench::AddPingPongRow(echo.get());
  rnicd::bench::AddLibraryRows(**daemon, **bare_echo);
  rnicd::bench::AddConnectRows(**daemon);
  rnicd::bench::AddCoreRows();
  rnicd::bench::AddGrpcRows(**daemon);
  rnicd::bench::AddProvisionRows(**daemon);
  rnicd::bench::AddFastRegisterRows();
  rnicd::bench::AddFastRegisterGrpcRows(**daemon);
  rnicd::bench::AddLiveRegionRows();
  rnicd::bench::AddMetricsRows();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
