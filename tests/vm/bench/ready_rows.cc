// The time from no memory to memory that the process and the card can use.
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/ndk/access_rights.h"
#include "client/cpp/client.h"
#include "tests/support/admin_client.h"
#include "tests/support/process/memory_file.h"
#include "tests/support/process/wait.h"
#include "tests/support/test_session.h"
#include "tests/vm/bench/rows.h"

namespace rnicd::vm_bench {
namespace {

// Mapped, faulted in, registered.
struct DirectReady {
  DirectReady(DirectCard& card, Source source, uint64_t size, bool touch) : memory(source, size) {
    if (touch) {
      memory.Touch();
    } else {
      memory.Populate();
    }
    region = card.Register(memory.bytes());
  }
  ~DirectReady() { DirectCard::Deregister(region); }
  DirectReady(const DirectReady&) = delete;
  DirectReady& operator=(const DirectReady&) = delete;

  OwnMemory memory;
  ibv_mr* region = nullptr;
};

// The same through librnicd.
struct RnicdReady {
  // `populate`: with the client's page tables filled, so that no later access faults.
  RnicdReady(const Client& client, uint64_t size, PageSize page_size, bool populate) {
    auto allocated = Memory::Allocate(client, {.size = size, .page_size = page_size, .populate = populate});
    Require(allocated.ok(), allocated.status().ToString());
    memory.emplace(*std::move(allocated));
    auto registered = MemoryRegion::Register(*memory, kMrFlagLocalWrite | kMrFlagRemoteRead | kMrFlagRemoteWrite);
    Require(registered.ok(), registered.status().ToString());
    region.emplace(*std::move(registered));
  }

  std::optional<Memory> memory;
  std::optional<MemoryRegion> region;
};

void AwaitReady(const test::DaemonProcess& pool) {
  Require(test::Eventually([&] { return test::AdminStatus(pool).memory_pool().classes(0).ready() == 1; }),
          "the pool was not refilled");
}

class Race {
 public:
  Race(DirectCard& card, const Client& client, uint64_t size) : card_(card), client_(client), size_(size) {}
  Race(const Race&) = delete;
  Race& operator=(const Race&) = delete;

  Contender Direct(const std::string& name, Source source, bool touch) {
    return {.name = name,
            .run = [=, this] { direct_ = std::make_unique<DirectReady>(card_, source, size_, touch); },
            .put_back = [this] { direct_.reset(); }};
  }
  Contender Rnicd(const std::string& name, PageSize page_size, bool populate) {
    return {.name = name,
            .run = [=, this] { rnicd_ = std::make_unique<RnicdReady>(client_, size_, page_size, populate); },
            .put_back = [this] { rnicd_.reset(); }};
  }
  // Through a daemon that has the memory ready, and makes it ready again before the next round.
  Contender Pool(const std::string& name, const Client& client, test::DaemonProcess& pool, bool populate) {
    return {.name = name,
            .run =
                [=, this, &client] {
                  rnicd_ = std::make_unique<RnicdReady>(client, size_, PageSize::kAuto, populate);
                  Require(rnicd_->memory->from_pool(), "the memory was not ready");
                },
            .put_back =
                [this, &pool] {
                  rnicd_.reset();
                  AwaitReady(pool);
                }};
  }

 private:
  DirectCard& card_;
  const Client& client_;
  const uint64_t size_;
  std::unique_ptr<DirectReady> direct_;
  std::unique_ptr<RnicdReady> rnicd_;
};

// Measures each step of RnicdReady separately, without librnicd.
Medians MeasureSteps(test::DaemonProcess& daemon, uint64_t size, v1::PageSize page_size) {
  using Clock = std::chrono::steady_clock;
  constexpr int kRounds = 7;
  test::TestSession session(daemon, "steps");
  session.pd_id();
  v1::AllocateMemoryRequest allocate;
  allocate.set_size(size);
  allocate.set_page_size(page_size);
  std::map<std::string, std::vector<double>> times;
  for (int round = 0; round < kRounds; ++round) {
    auto began = Clock::now();
    const auto lap = [&](const char* step) {
      times[step].push_back(std::chrono::duration<double, std::micro>(Clock::now() - began).count());
      began = Clock::now();
    };
    const auto allocated = session.Call(&test::MemoryStub::AllocateMemory, allocate);
    Require(allocated.ok(), "AllocateMemory: " + allocated.message);
    const uint64_t memory = allocated.response.memory_id();
    lap("allocate");
    const UniqueFd file = session.Fetch(allocated.response.fd_ticket());
    const test::SharedMapping mapping(file.get(), size);
    lap("fetch_and_map");
    Require(session.Seal(memory).ok(), "SealMemory was refused");
    lap("seal");
    const uint64_t region = session.CreateMr();
    session.RegisterWhole(region, memory, size);
    lap("create_and_register");
    OwnMemory::Populate(mapping.bytes());
    lap("populate_client");
    Require(session.CloseMr(region).ok() && session.Release(memory).ok(), "memory cannot be given back");
  }
  Medians medians{.rounds = kRounds};
  for (const auto& [step, samples] : times) {
    medians.us[step] = Median(samples);
  }
  return medians;
}

nlohmann::json Labels(uint64_t page_bytes, uint64_t bytes) { return {{"page_bytes", page_bytes}, {"bytes", bytes}}; }

}  // namespace

nlohmann::json ReadyRows(DirectCard& card, test::DaemonProcess& daemon, test::DaemonProcess& pool) {
  constexpr uint64_t kSmallPagesBytes = 256 * kMiB;
  // All 2 MiB pages of the guest; the two sides use them alternately.
  constexpr uint64_t kHugePagesBytes = 64 * kMiB;
  const auto client =
      Client::Connect({.socket_dir = daemon.socket_dir(), .label = "bench", .call_deadline = std::chrono::minutes(2)});
  Require(client.ok(), client.status().ToString());
  const auto pool_client =
      Client::Connect({.socket_dir = pool.socket_dir(), .label = "bench", .call_deadline = std::chrono::minutes(2)});
  Require(pool_client.ok(), pool_client.status().ToString());
  AwaitReady(pool);
  Race small(card, *client, kSmallPagesBytes);
  Race huge(card, *client, kHugePagesBytes);
  nlohmann::json rows = nlohmann::json::array();
  rows.push_back(Row(
      "ready", Labels(kSmallPage, kSmallPagesBytes),
      Measure({small.Direct("direct", Source::kSmallPages, false),
               small.Direct("direct_touched", Source::kSmallPages, true),
               small.Direct("direct_file", Source::kFile, false), small.Direct("direct_thp", Source::kAnyPages, false),
               small.Rnicd("rnicd", PageSize::k4KiB, false), small.Rnicd("rnicd_populated", PageSize::k4KiB, true),
               small.Pool("pool", *pool_client, pool, false), small.Pool("pool_populated", *pool_client, pool, true)},
              {.rounds_min = 5, .rounds_max = 9})));
  rows.push_back(Row(
      "ready", Labels(kHugePage, kHugePagesBytes),
      Measure(
          {huge.Direct("direct", Source::kHugePages, false), huge.Direct("direct_touched", Source::kHugePages, true),
           huge.Rnicd("rnicd", PageSize::k2MiB, false), huge.Rnicd("rnicd_populated", PageSize::k2MiB, true)},
          {.rounds_max = 30})));
  rows.push_back(
      Row("steps", Labels(kSmallPage, kSmallPagesBytes), MeasureSteps(daemon, kSmallPagesBytes, v1::PAGE_SIZE_4KIB)));
  rows.push_back(
      Row("steps", Labels(kHugePage, kHugePagesBytes), MeasureSteps(daemon, kHugePagesBytes, v1::PAGE_SIZE_2MIB)));
  return rows;
}

}  // namespace rnicd::vm_bench
