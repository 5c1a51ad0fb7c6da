// FastRegister and Invalidate through a running daemon: one request a call, and chains.
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "tests/bench/bench.h"
#include "tests/support/queue_client.h"

namespace rnicd::bench {
namespace {

constexpr uint64_t kMappedPages = 2048;

// A connected queue pair and two chains, ready to be posted.
class FastClient {
 public:
  FastClient(test::DaemonProcess& daemon, int chain, uint64_t pages)
      : session_(daemon, "bench"), memory_(session_, kMappedPages * test::kPage), queue_(session_, Options()) {
    test::Connect(queue_, queue_.Query().address());
    std::vector<size_t> scattered;
    for (uint64_t page = 0; page < pages; ++page) {
      scattered.push_back(kMappedPages - 1 - 2 * page);
    }
    const std::vector<uint64_t> array = memory_.Pages(scattered);
    const uint32_t silent = v1::OP_FLAG_SILENT_SUCCESS;
    registers_.set_qp_id(queue_.qp_id());
    invalidates_.set_qp_id(queue_.qp_id());
    for (int index = 0; index < chain; ++index) {
      const uint64_t region = test::FastRegion(session_, static_cast<uint32_t>(pages));
      *registers_.add_requests() =
          test::FastRegisterRequest(region, array, pages * test::kPage, kBase, silent | v1::OP_FLAG_ALLOW_REMOTE_WRITE);
      *invalidates_.add_requests() = test::InvalidateMrRequest(region, silent);
    }
  }

  bool RegisterAndInvalidate() { return Post(registers_) && Post(invalidates_); }

 private:
  static test::QueueOptions Options() { return {.initiator_queue_depth = 1024}; }
  bool Post(const v1::PostRequest& chain) {
    const auto posted = session_.Call(&test::QueueStub::Post, chain);
    return posted.ok() && !posted.response.has_failure();
  }

  test::TestSession session_;
  test::TestMemory memory_;
  test::TestQueue queue_;
  v1::PostRequest registers_;
  v1::PostRequest invalidates_;
};

void Chain(benchmark::State& state, test::DaemonProcess& daemon, int chain) {
  FastClient client(daemon, chain, static_cast<uint64_t>(state.range(0)));
  for (auto _ : state) {
    if (!client.RegisterAndInvalidate()) {
      state.SkipWithError("refused");
      return;
    }
  }
}

}  // namespace

void AddFastRegisterGrpcRows(test::DaemonProcess& daemon) {
  for (const int chain : {1, kChain}) {
    auto* rows =
        benchmark::RegisterBenchmark(("fast/grpc_chain_" + std::to_string(chain)).c_str(),
                                     [&daemon, chain](benchmark::State& state) { Chain(state, daemon, chain); })
            ->UseRealTime();
    for (const int64_t pages : kPageCounts) {
      rows->Arg(pages);
    }
  }
}

}  // namespace rnicd::bench
