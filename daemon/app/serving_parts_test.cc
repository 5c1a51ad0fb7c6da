#include "daemon/app/serving_parts.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "base/mutex.h"

namespace rnicd::app {
namespace {

class SteppedClock final : public Clock {
 public:
  Instant Now() const override {
    MutexLock lock(mutex_);
    return now_;
  }
  void Advance(std::chrono::seconds by) {
    MutexLock lock(mutex_);
    now_ += by;
  }

 private:
  mutable Mutex mutex_;
  Instant now_ RNICD_GUARDED_BY(mutex_) = Instant(std::chrono::hours(1));
};

class DeafObserver final : public core::Observer {
 public:
  void Observe(const core::Observation&) override {}
  bool HeedsSuccesses() const override { return false; }
};

// A front door without threads: those of the real one are in daemon/transport.
class NoDoor final : public SystemDoor {
 public:
  absl::Status Start() override { return absl::OkStatus(); }
  void StopAccepting() override {}
  void Stop() override {}
  uint64_t connections() const override { return 0; }
  std::vector<health::ServingPart> Parts() override { return {}; }
};

class OneWayGate {
 public:
  void Open() {
    MutexLock lock(mutex_);
    open_ = true;
    changed_.NotifyAll();
  }
  void Pass() {
    MutexLock lock(mutex_);
    while (!open_) {
      changed_.Wait(mutex_);
    }
  }

 private:
  Mutex mutex_;
  ConditionVariable changed_;
  bool open_ RNICD_GUARDED_BY(mutex_) = false;
};

// If that never happens, the test runner's timeout ends the test.
void WaitUntil(const std::function<bool()>& condition) {
  while (!condition()) {
    std::this_thread::yield();
  }
}

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
    OneWayGate held;
    OneWayGate let_go;
    post([&] {
      held.Open();
      let_go.Pass();
    });
    held.Pass();
    check_.RunRound();
    clock_.Advance(std::chrono::seconds(6));
    WaitUntil([&] { return check_.Read().hanging.size() == 1; });
    EXPECT_EQ(check_.Read().Text(), name + " has not answered for 6 s\n");
    let_go.Open();
    WaitUntil([&] { return check_.Read().serves(); });
  }

  const SteadyClock steady_;
  SteppedClock clock_;
  DeafObserver observer_;
  NoDoor door_;
  const std::unique_ptr<rpc::Server> workloads_ = *rpc::Server::Start(2, rpc::Limits{});
  const std::unique_ptr<rpc::Server> operators_ = *rpc::Server::Start(1, rpc::Limits{});
  core::WorkerPool fd_workers_{1};
  core::Alarms alarms_{steady_};
  const std::unique_ptr<rings::RingThreads> rings_ = *rings::RingThreads::Start(2, observer_, steady_, {});
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
