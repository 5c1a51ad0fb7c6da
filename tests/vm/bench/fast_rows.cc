// The cost of a fast registration in each engine, compared with registering the same pages by libibverbs.
#include <algorithm>
#include <memory>

#include "tests/support/queue_client.h"
#include "tests/vm/bench/rows.h"

namespace rnicd::vm_bench {
namespace {

constexpr int kChain = 64;
constexpr size_t kPageCounts[] = {1, 16, 256};
constexpr size_t kMappedPages = 1024;

// Adjacent pages or, if `scattered`, every second page of the mapping, starting at its end.
std::vector<size_t> ChoosePages(size_t count, bool scattered) {
  std::vector<size_t> pages;
  for (size_t index = 0; index < count; ++index) {
    pages.push_back(scattered ? kMappedPages - 1 - 2 * index : index);
  }
  return pages;
}

// A queue pair connected to itself, memory, and regions that one Post fast-registers and another invalidates.
class Client {
 public:
  explicit Client(test::DaemonProcess& daemon)
      : session_(daemon, "bench"),
        memory_(session_, kMappedPages * kSmallPage),
        queue_(session_, {.initiator_queue_depth = 4 * kChain}) {
    Require(test::Connect(queue_, queue_.Query().address()).ok(), "a queue pair cannot be connected to itself");
    for (int index = 0; index < kChain; ++index) {
      regions_.push_back(test::FastRegion(session_, static_cast<uint32_t>(std::ranges::max(kPageCounts))));
    }
    poll_.set_cq_id(queue_.initiator_cq_id());
    poll_.set_max_results(1);
  }

  Contender Chains(const std::string& name, size_t pages, bool scattered) {
    const std::vector<uint64_t> array = memory_.Pages(ChoosePages(pages, scattered));
    v1::PostRequest registers;
    v1::PostRequest invalidates;
    registers.set_qp_id(queue_.qp_id());
    invalidates.set_qp_id(queue_.qp_id());
    for (const uint64_t region : regions_) {
      const bool last = region == regions_.back();
      *registers.add_requests() = test::FastRegisterRequest(
          region, array, pages * kSmallPage, test::kBase, v1::OP_FLAG_SILENT_SUCCESS | v1::OP_FLAG_ALLOW_REMOTE_WRITE);
      *invalidates.add_requests() = test::InvalidateMrRequest(region, last ? 0 : uint32_t{v1::OP_FLAG_SILENT_SUCCESS});
    }
    return {.name = name,
            .run =
                [this, registers = std::move(registers), invalidates = std::move(invalidates)] {
                  Post(registers);
                  Post(invalidates);
                  AwaitLast();
                },
            .operations = 2 * kChain};
  }

 private:
  void Post(const v1::PostRequest& chain) {
    const auto posted = session_.Call(&test::QueueStub::Post, chain);
    Require(posted.ok() && !posted.response.has_failure(),
            "a chain was refused: " + posted.message + posted.response.ShortDebugString());
  }

  // Waits for the last completion: the card binds a window after Post has returned.
  void AwaitLast() {
    while (true) {
      const auto results = session_.Call(&test::QueueStub::GetCqResultsEx, poll_);
      Require(results.ok(), "GetCqResultsEx: " + results.message);
      if (results.response.results_size() != 0) {
        const uint32_t status = results.response.results(0).result().ntstatus();
        Require(status == test::kStatusSuccess, "a request failed: " + results.response.ShortDebugString());
        return;
      }
    }
  }

  test::TestSession session_;
  test::TestMemory memory_;
  test::TestQueue queue_;
  std::vector<uint64_t> regions_;
  v1::GetCqResultsExRequest poll_;
};

// Registers and deregisters `pages` pages as one region or, if `scattered`, each as one; repeated so that a run takes
// long enough to measure.
Contender Direct(const std::string& name, DirectCard& card, const OwnMemory& memory, size_t pages, bool scattered) {
  const size_t times = std::max<size_t>(1, kChain / pages);
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

}  // namespace

nlohmann::json FastRows(DirectCard& card, test::DaemonProcess& daemon, test::DaemonProcess& windows) {
  OwnMemory own(Source::kSmallPages, kMappedPages * kSmallPage);
  own.Populate();
  Client client(daemon);
  Client with_windows(windows);
  nlohmann::json rows = nlohmann::json::array();
  for (const size_t pages : kPageCounts) {
    rows.push_back(
        Row("fast", {{"pages", pages}, {"chain", kChain}},
            Measure({Direct("direct_one_region", card, own, pages, false),
                     Direct("direct_region_each", card, own, pages, true), client.Chains("engine_direct", pages, false),
                     client.Chains("engine_compose", pages, true), with_windows.Chains("engine_window", pages, false),
                     with_windows.Chains("engine_window_compose", pages, true)},
                    {.budget = std::chrono::seconds(8)})));
  }
  return rows;
}

}  // namespace rnicd::vm_bench
