// rnicd_ready_bench: from nothing to memory that is registered and mapped with its page tables filled, on the soft
// card; and what another tenant notices of a pool that is refilled. Prints a table in Markdown.
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/ndk/access_rights.h"
#include "base/units.h"
#include "client/cpp/client.h"
#include "client/cpp/memory.h"
#include "client/cpp/memory_region.h"
#include "tests/support/admin_client.h"
#include "tests/support/metrics_page.h"
#include "tests/support/process/daemon_process.h"

namespace rnicd::bench {
namespace {

using Clock = std::chrono::steady_clock;
constexpr uint64_t kGiB = uint64_t{1} << 30;
constexpr int kRounds = 7;

template <typename Value>
Value Must(absl::StatusOr<Value> value) {
  if (!value.ok()) {
    std::fprintf(stderr, "rnicd_ready_bench: %s\n", value.status().ToString().c_str());
    std::exit(1);
  }
  return *std::move(value);
}

double Median(std::vector<double> samples) {
  std::ranges::sort(samples);
  return samples[samples.size() / 2];
}

double Milliseconds(Clock::duration duration) { return std::chrono::duration<double, std::milli>(duration).count(); }

// `put_back` is not measured.
double MedianOf(const std::function<void()>& run, const std::function<void()>& put_back) {
  std::vector<double> samples;
  for (int round = 0; round < kRounds; ++round) {
    const auto began = Clock::now();
    run();
    samples.push_back(Milliseconds(Clock::now() - began));
    put_back();
  }
  return Median(samples);
}

// Private memory, mapped and faulted in by one call. Such a process needs no registration here: the soft card has none
// for it.
double ByItself(uint64_t bytes, bool huge) {
  void* address = MAP_FAILED;
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | (huge ? MAP_HUGETLB : 0);
  return MedianOf(
      [&] {
        address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
        if (address == MAP_FAILED || madvise(address, bytes, MADV_POPULATE_WRITE) != 0) {
          std::perror("mmap");
          std::exit(1);
        }
      },
      [&] { munmap(address, bytes); });
}

std::unique_ptr<test::DaemonProcess> StartDaemon(const std::string& pool, const std::string& percent = "100") {
  return Must(test::DaemonProcess::Start(
      {.flags = {"--log_level=warning", "--memory_pool=" + pool, "--memory_pool_cpu_percent=" + percent,
                 "--memory_pool_mib_per_second=1048576"}}));
}

bool PoolIsFull(const test::DaemonProcess& daemon) {
  const v1::GetStatusResponse status = test::AdminStatus(daemon);
  return std::ranges::all_of(status.memory_pool().classes(),
                             [](const auto& each) { return each.ready() == each.files(); });
}

void AwaitFullPool(const test::DaemonProcess& daemon) {
  while (!PoolIsFull(daemon)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

Client Connect(const test::DaemonProcess& daemon) {
  return Must(Client::Connect({.socket_dir = daemon.socket_dir(), .label = "bench"}));
}

// Allocated, mapped, its page tables filled, registered. `hit`: the pool serves it.
double ThroughRnicd(const std::string& pool, uint64_t bytes, PageSize pages, bool hit) {
  const auto daemon = StartDaemon(pool);
  const Client client = Connect(*daemon);
  std::optional<Memory> memory;
  std::optional<MemoryRegion> region;
  AwaitFullPool(*daemon);
  return MedianOf(
      [&] {
        memory.emplace(Must(Memory::Allocate(client, {.size = bytes, .page_size = pages})));
        region.emplace(Must(MemoryRegion::Register(*memory, kMrFlagRemoteWrite)));
        if (memory->from_pool() != hit) {
          std::fprintf(stderr, "rnicd_ready_bench: the pool did not behave\n");
          std::exit(1);
        }
      },
      [&] {
        region.reset();
        memory.reset();
        AwaitFullPool(*daemon);
      });
}

void PrintRow(const char* what, double rnicd, double itself) {
  std::printf("| %s | %.1f ms | %.1f ms | %.2f |\n", what, itself, rnicd, itself / rnicd);
  (void)std::fflush(stdout);
}

uint64_t FreeHugePages() {
  uint64_t free = 0;
  if (std::FILE* const file = std::fopen("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "re")) {
    (void)!std::fscanf(file, "%lu", &free);
    (void)std::fclose(file);
  }
  return free;
}

void PrintReady() {
  std::printf(
      "| from nothing to registered and mapped | by itself | through rnicd | times as fast |\n|---|---:|---:|---:|\n");
  const double small = ByItself(kGiB, false);
  PrintRow("1 GiB, 4 KiB pages, pool hit", ThroughRnicd("4KiB:1GiB", kGiB, PageSize::k4KiB, true), small);
  PrintRow("1 GiB, 4 KiB pages, pool hit, half of it made then",
           ThroughRnicd("4KiB:512MiB", kGiB, PageSize::k4KiB, true), small);
  PrintRow("1 GiB, 4 KiB pages, no pool", ThroughRnicd("", kGiB, PageSize::k4KiB, false), small);
  PrintRow("256 MiB, 4 KiB pages, pool hit", ThroughRnicd("4KiB:256MiB", kGiB / 4, PageSize::k4KiB, true),
           ByItself(kGiB / 4, false));
  if (FreeHugePages() < 1024) {
    std::printf(
        "| 1 GiB, 2 MiB pages | not measured: fewer than 1,024 pages of 2 MiB are free (vm.nr_hugepages) | | |\n");
    return;
  }
  const double large = ByItself(kGiB, true);
  PrintRow("1 GiB, 2 MiB pages, pool hit", ThroughRnicd("2MiB:1GiB", kGiB, PageSize::kAuto, true), large);
  PrintRow("1 GiB, 2 MiB pages, no pool", ThroughRnicd("", kGiB, PageSize::k2MiB, false), large);
}

// The 99th percentile of registering and deregistering 64 KiB, in microseconds, while `busy` holds or for a second.
double RegistrationsP99(const Memory& memory, const std::function<bool()>& busy) {
  std::vector<double> samples;
  for (const auto end = Clock::now() + std::chrono::seconds(1); Clock::now() < end && busy();) {
    const auto began = Clock::now();
    {
      const auto region = Must(MemoryRegion::Register(memory, kMrFlagRemoteWrite));
    }
    samples.push_back(Milliseconds(Clock::now() - began) * 1000);
  }
  std::ranges::sort(samples);
  return samples.empty() ? 0 : samples[samples.size() * 99 / 100];
}

// One tenant registers while the pool is refilled, and while it is full.
void PrintRefilling() {
  const auto daemon = StartDaemon("4KiB:1GiB", "50");
  const Client victim = Connect(*daemon);
  const Client other = Connect(*daemon);
  const Memory own = Must(Memory::Allocate(victim, {.size = 64 << 10, .page_size = PageSize::k4KiB}));
  std::vector<double> during;
  std::vector<double> after;
  for (int round = 0; round < kRounds; ++round) {
    AwaitFullPool(*daemon);
    after.push_back(RegistrationsP99(own, [] { return true; }));
    {
      const Memory taken = Must(Memory::Allocate(other, {.size = kGiB, .page_size = PageSize::k4KiB}));
    }
    during.push_back(RegistrationsP99(own, [calls = 0, full = false, &daemon]() mutable {
      full = full || (++calls % 1000 == 0 && PoolIsFull(*daemon));
      return !full;
    }));
  }
  std::printf(
      "\n| p99 of another tenant's RegisterMr and DeregisterMr | full pool | being refilled | ratio "
      "|\n|---|---:|---:|---:|\n");
  std::printf("| 64 KiB | %.0f us | %.0f us | %.2f |\n", Median(after), Median(during), Median(during) / Median(after));
}

// The processor time is that of all threads of the daemon, by its own metric.
void PrintIdle() {
  const auto daemon = Must(test::DaemonProcess::Start(
      {.flags = {"--log_level=warning", "--memory_pool=4KiB:64MiBx2", "--metrics_address=127.0.0.1:0"}}));
  AwaitFullPool(*daemon);
  const std::string address = test::AdminStatus(*daemon).metrics_address();
  const auto used = [&address] {
    return test::MetricsPage(test::HttpGet(address, "/metrics").body).Value("process_cpu_seconds_total");
  };
  const double before = used();
  std::this_thread::sleep_for(std::chrono::seconds(10));
  std::printf("\nA daemon with a full pool and no work used %.0f ms of processor time in 10 s.\n",
              (used() - before) * 1000);
}

}  // namespace
}  // namespace rnicd::bench

int main() {
  rnicd::bench::PrintReady();
  rnicd::bench::PrintRefilling();
  rnicd::bench::PrintIdle();
  return 0;
}
