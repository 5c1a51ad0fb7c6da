// Whether calls slow down when the daemon holds a million live fast registrations instead of a thousand.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <random>
#include <vector>

#include "tests/bench/bench.h"
#include "tests/support/queue_client.h"

namespace rnicd::bench {
namespace {

constexpr uint64_t kFew = 1000;
constexpr uint64_t kMany = 1000000;
constexpr uint64_t kReportBatch = 1000;
constexpr int kRounds = 4000;

class LiveGrpcRegions {
 public:
  explicit LiveGrpcRegions(test::DaemonProcess& daemon)
      : session_(daemon, "live"), memory_(session_, test::kPage), queue_(session_, Options()) {
    test::Connect(queue_, queue_.Query().address());
  }

  // Adds regions until there are `count`, each registered.
  void GrowTo(uint64_t count) {
    while (regions_.size() < count) {
      v1::BatchCreateMrRequest creates;
      for (uint64_t index = 0; index < kReportBatch; ++index) {
        v1::CreateMrRequest* create = creates.add_items();
        create->set_pd_id(session_.pd_id());
        create->set_fast_register(true);
      }
      const auto created = session_.Call(&test::MemoryStub::BatchCreateMr, creates);
      v1::BatchInitializeFastRegisterMrRequest initializes;
      v1::PostRequest chain;
      chain.set_qp_id(queue_.qp_id());
      for (const v1::CreateMrOutcome& outcome : created.response.outcomes()) {
        regions_.push_back(outcome.response().mr_id());
        v1::InitializeFastRegisterMrRequest* initialize = initializes.add_items();
        initialize->set_mr_id(regions_.back());
        initialize->set_adapter_page_count(1);
        *chain.add_requests() = Register(regions_.back());
      }
      session_.Call(&test::MemoryStub::BatchInitializeFastRegisterMr, initializes);
      session_.Call(&test::QueueStub::Post, chain);
    }
  }

  // Median microseconds of one call on a region drawn at random.
  double Median(const std::function<void(uint64_t region)>& call) {
    std::vector<double> rounds;
    for (int round = 0; round < kRounds; ++round) {
      const uint64_t region = regions_[random_() % regions_.size()];
      const auto before = std::chrono::steady_clock::now();
      call(region);
      rounds.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - before).count());
    }
    std::nth_element(rounds.begin(), rounds.begin() + kRounds / 2, rounds.end());
    return rounds[kRounds / 2];
  }

  double InvalidateAndRegister() {
    return Median([this](uint64_t region) {
      v1::PostRequest chain;
      chain.set_qp_id(queue_.qp_id());
      *chain.add_requests() = test::InvalidateMrRequest(region, v1::OP_FLAG_SILENT_SUCCESS);
      *chain.add_requests() = Register(region);
      session_.Call(&test::QueueStub::Post, chain);
    });
  }
  double GetRemoteToken() {
    return Median([this](uint64_t region) { session_.RemoteToken(region); });
  }
  double CreateAndClose() {
    return Median([this](uint64_t /*region*/) { session_.CloseMr(session_.CreateMr()); });
  }

 private:
  static test::QueueOptions Options() { return {.initiator_queue_depth = 2 * kReportBatch}; }
  v1::WorkRequest Register(uint64_t region) {
    return test::FastRegisterRequest(region, memory_.Pages({0}), test::kPage, kBase,
                                     v1::OP_FLAG_SILENT_SUCCESS | v1::OP_FLAG_ALLOW_REMOTE_WRITE);
  }

  test::TestSession session_;
  test::TestMemory memory_;
  test::TestQueue queue_;
  std::vector<uint64_t> regions_;
  std::minstd_rand random_{1};
};

}  // namespace

void PrintLiveReport(test::DaemonProcess& daemon) {
  LiveGrpcRegions live(daemon);
  const struct {
    const char* name;
    double (LiveGrpcRegions::*measure)();
  } kRows[] = {{"live_grpc/invalidate_and_fast_register", &LiveGrpcRegions::InvalidateAndRegister},
               {"live_grpc/get_remote_token", &LiveGrpcRegions::GetRemoteToken},
               {"live_grpc/create_and_close", &LiveGrpcRegions::CreateAndClose}};
  std::vector<double> few;
  live.GrowTo(kFew);
  for (const auto& row : kRows) {
    few.push_back((live.*row.measure)());
  }
  live.GrowTo(kMany);
  for (size_t index = 0; index < few.size(); ++index) {
    std::printf("%s_1000_us %.1f\n", kRows[index].name, few[index]);
    std::printf("%s_1000000_to_1000 %.2f\n", kRows[index].name, (live.*kRows[index].measure)() / few[index]);
  }
}

}  // namespace rnicd::bench
