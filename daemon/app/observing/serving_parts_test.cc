#include "daemon/app/observing/serving_parts.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/manual_clock_fake.h"
#include "base/waiting_fixture.h"
#include "daemon/core/session/wired_node_test.h"

namespace rnicd::app {
namespace {

// A front door without threads: those of the real one are in daemon/transport.
class NoDoor final : public SystemDoor {
 public:
  absl::Status Start() override { return absl::OkStatus(); }
  void StopAccepting() override {}
  void Stop() override {}
  uint64_t connections() const override { return 0; }
  core::Doors* doors() override { return nullptr; }
  std::vector<health::ServingPart> Parts() override { return {}; }
};

// The real threads, and a check whose rounds and clock the test makes.
class ServingPartsTest : public ::testing::Test {
 protected:
  ServingPartsTest() {
    alarms_.Start();
    check_.SetParts(ServingParts({.door = door_,
                                  .workloads = *workloads_,
                                  .operators = *operators_,
                                  .fd_workers = fd_workers_,
                                  .alarms = alarms_,
                                  .rings = rings_.get()}),
                    [](const health::ServingVerdict&, bool) {});
  }
  ~ServingPartsTest() override { check_.Stop(); }

  using Task = std::function<void()>;
  void ExpectNamedWhileHeld(const std::string& name, const std::function<void(Task)>& post) {
    Barrier held;
    post([&] { held.Pass(); });
    held.AwaitWaiter();
    check_.RunRound();
    clock_.Advance(std::chrono::seconds(6));
    EXPECT_TRUE(Eventually([&] { return check_.Read().hanging.size() == 1; }));
    EXPECT_EQ(check_.Read().Text(), name + " has not answered for 6 s\n");
    held.Open();
    EXPECT_TRUE(Eventually([&] { return check_.Read().serves(); }));
  }

  const SteadyClock steady_;
  ManualClock clock_;
  core::NullObserver observer_;
  NoDoor door_;
  const std::unique_ptr<rpc::Server> workloads_ = *rpc::Server::Start(2, rpc::Limits{}, steady_);
  const std::unique_ptr<rpc::Server> operators_ = *rpc::Server::Start(1, rpc::Limits{}, steady_);
  core::WorkerPool fd_workers_{1};
  core::Alarms alarms_{steady_};
  const std::unique_ptr<rings::RingThreads> rings_ = *rings::RingThreads::Start(2, steady_, {});
  health::ServingCheck check_{clock_};
};

TEST_F(ServingPartsTest, AnRpcLoopThatIsHeldIsNamed) {
  ExpectNamedWhileHeld("rpc loop 1", [&](Task task) { workloads_->loops()[0]->Post(std::move(task)); });
  ExpectNamedWhileHeld("rpc loop 2", [&](Task task) { workloads_->loops()[1]->Post(std::move(task)); });
}

TEST_F(ServingPartsTest, TheOperatorsLoopIsNamed) {
  ExpectNamedWhileHeld("operators' rpc loop 1", [&](Task task) { operators_->loops()[0]->Post(std::move(task)); });
}

TEST_F(ServingPartsTest, TheFdWorkerIsNamed) {
  ExpectNamedWhileHeld("fd worker", [&](Task task) { fd_workers_.Post(std::move(task)); });
}

TEST_F(ServingPartsTest, TheThreadOfAlarmsIsNamed) {
  ExpectNamedWhileHeld("alarms", [&](Task task) { alarms_.Set(std::chrono::nanoseconds(0), std::move(task)); });
}

TEST_F(ServingPartsTest, ARingThreadIsNamed) {
  ExpectNamedWhileHeld("ring thread 1", [&](Task task) { rings_->Post(0, std::move(task)); });
  ExpectNamedWhileHeld("ring thread 2", [&](Task task) { rings_->Post(1, std::move(task)); });
}

}  // namespace
}  // namespace rnicd::app
