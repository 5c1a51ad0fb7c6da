// The cost of a fast registration in each engine, compared with registering the same pages by libibverbs.
#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>

#include "base/ndk/access_rights.h"
#include "base/status.h"
#include "client/cpp/client.h"
#include "client/cpp/completion_queue.h"
#include "client/cpp/fast_region.h"
#include "client/cpp/logical_mapping.h"
#include "client/cpp/memory.h"
#include "client/cpp/queue_pair.h"
#include "tests/vm/bench/rows.h"

namespace rnicd::vm_bench {
namespace {

constexpr int kFastChain = 64;
constexpr size_t kFastPageCounts[] = {1, 16, 256};
constexpr size_t kMappedPages = 1024;

// Adjacent pages or, if `scattered`, every second page of the mapping, starting at its end.
std::vector<size_t> ChoosePages(size_t count, bool scattered) {
  std::vector<size_t> pages;
  for (size_t index = 0; index < count; ++index) {
    pages.push_back(scattered ? kMappedPages - 1 - 2 * index : index);
  }
  return pages;
}

// A client of librnicd whose queue pair is connected to itself, with regions that one chain fast-registers and another
// invalidates. Requests travel through a ring.
class FastClient {
 public:
  explicit FastClient(const test::DaemonProcess& daemon)
      : client_(Must(rnicd::Client::Connect(
            {.socket_dir = daemon.socket_dir(), .adapter_name = kCard, .data_path = DataPath::kRings}))),
        memory_(Must(Memory::Allocate(client_, {.size = kMappedPages * kSmallPage}))),
        mapping_(Must(LogicalMapping::Build(memory_))),
        queue_(Must(CompletionQueue::Create(client_, 4 * kFastChain))),
        pair_(Must(QueuePair::Create(queue_, queue_, {.initiator_queue_depth = 4 * kFastChain}))) {
    Require(pair_.Connect(pair_.address()).ok(), "a queue pair cannot be connected to itself");
    for (int index = 0; index < kFastChain; ++index) {
      regions_.push_back(Must(FastRegion::Create(
          client_, {.max_pages = static_cast<uint32_t>(std::ranges::max(kFastPageCounts)), .remote_access = true})));
    }
  }

  Contender Chains(const std::string& name, size_t pages, bool scattered) {
    FastRegistration registration{.length = pages * kSmallPage, .base_address = mapping_.AsRegistration().base_address};
    for (const size_t page : ChoosePages(pages, scattered)) {
      registration.pages.push_back(mapping_.pages()[page]);
    }
    WorkChain registers;
    WorkChain invalidates;
    for (const FastRegion& region : regions_) {
      const bool last = &region == &regions_.back();
      registers.FastRegister(region, registration, {.flags = kOpFlagSilentSuccess | kOpFlagRemoteWrite});
      invalidates.Invalidate(region, {.flags = last ? 0 : uint32_t{kOpFlagSilentSuccess}});
    }
    return {.name = name,
            .run =
                [this, registers = std::move(registers), invalidates = std::move(invalidates)] {
                  Post(registers);
                  Post(invalidates);
                  // The card binds a window after the post.
                  const std::vector<Completion> completions = Must(queue_.PollFor(1, kWaitMax));
                  Require(completions.size() == 1 && completions.front().ok(), "a request failed");
                },
            .operations = 2 * kFastChain};
  }

 private:
  void Post(const WorkChain& chain) {
    const PostOutcome posted = Must(pair_.Post(chain));
    Require(posted.failure.ok(), "a chain was refused: " + posted.failure.ToString());
  }

  rnicd::Client client_;
  Memory memory_;
  LogicalMapping mapping_;
  CompletionQueue queue_;
  QueuePair pair_;
  std::vector<FastRegion> regions_;
};

// Registers and deregisters `pages` pages as one region or, if `scattered`, each as one; repeated so that a run takes
// long enough to measure.
Contender Direct(const std::string& name, DirectCard& card, const OwnMemory& memory, size_t pages, bool scattered) {
  const size_t times = std::max<size_t>(1, kFastChain / pages);
  std::vector<std::span<std::byte>> pieces;
  if (scattered) {
    for (const size_t page : ChoosePages(pages, true)) {
      pieces.push_back(memory.bytes().subspan(page * kSmallPage, kSmallPage));
    }
  } else {
    pieces.push_back(memory.bytes().first(pages * kSmallPage));
  }
  return {.name = name,
          .run =
              [&card, pieces, times] {
                for (size_t time = 0; time < times; ++time) {
                  std::vector<ibv_mr*> regions;
                  for (const std::span<std::byte> piece : pieces) {
                    regions.push_back(card.Register(piece));
                  }
                  std::ranges::for_each(regions, DirectCard::Deregister);
                }
              },
          .operations = 2 * static_cast<double>(times)};
}

// Maps memory logically, which pins nothing yet where the kernel module registers. In microseconds a page.
nlohmann::json MappingRow(const test::DaemonProcess& daemon) {
  const rnicd::Client client = Must(rnicd::Client::Connect({.socket_dir = daemon.socket_dir(), .adapter_name = kCard}));
  const Memory memory = Must(Memory::Allocate(client, {.size = kMappedBytes}));
  std::optional<LogicalMapping> mapping;
  return Row("mapping", {{"bytes", kMappedBytes}},
             Measure({{.name = "page",
                       .run = [&] { mapping.emplace(Must(LogicalMapping::Build(memory))); },
                       .operations = double{kMappedBytes / kSmallPage},
                       .put_back = [&mapping] { mapping.reset(); }}}));
}

}  // namespace

nlohmann::json FastRows(DirectCard& card, const FastDaemons& daemons) {
  OwnMemory own(Source::kSmallPages, kMappedPages * kSmallPage);
  own.Populate();
  FastClient client(daemons.registrations);
  FastClient with_windows(daemons.windows);
  FastClient by_kernel(daemons.kernel);
  nlohmann::json rows = nlohmann::json::array();
  for (const size_t pages : kFastPageCounts) {
    rows.push_back(Row(
        "fast", {{"pages", pages}, {"chain", kFastChain}},
        Measure(
            {Direct("direct_one_region", card, own, pages, false), Direct("direct_region_each", card, own, pages, true),
             client.Chains("engine_direct", pages, false), client.Chains("engine_compose", pages, true),
             with_windows.Chains("engine_window", pages, false),
             with_windows.Chains("engine_window_compose", pages, true), by_kernel.Chains("engine_kernel", pages, false),
             by_kernel.Chains("engine_kernel_scattered", pages, true)},
            {.budget = std::chrono::seconds(8)})));
  }
  rows.push_back(MappingRow(daemons.kernel));
  return rows;
}

}  // namespace rnicd::vm_bench
