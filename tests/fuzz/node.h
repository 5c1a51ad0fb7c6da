#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/manual_clock_fake.h"
#include "base/secrets/seeded_random_fake.h"
#include "base/system/faulty_os.h"
#include "daemon/core/session/wired_node_test.h"
#include "provider/soft/soft_provider.h"

namespace rnicd::fuzz {

// Queued work that runs in order when the fuzzer decides.
class JobQueue final : public core::Executor {
 public:
  void Enqueue(const core::JobOwner& owner, std::function<void()> job) override {
    jobs_.push_back({.owner = owner, .run = std::move(job)});
  }
  std::vector<std::function<void()>> Withdraw(const core::JobOwner& owner) override {
    return core::TakeJobs(jobs_, owner);
  }
  // Runs the oldest job; false if there is none.
  bool RunOne() {
    if (jobs_.empty()) {
      return false;
    }
    const std::function<void()> job = std::move(jobs_.front().run);
    jobs_.pop_front();
    job();
    return true;
  }
  void Clear() { jobs_.clear(); }

 private:
  std::deque<core::QueuedJob> jobs_;
};

// Queues the soft card's asynchronous work in the same way.
class EngineQueue final : public provider::SoftWorker {
 public:
  // `jobs` must outlive the engine.
  explicit EngineQueue(JobQueue& jobs) : jobs_(jobs) {}
  void Post(std::function<void()> job) override { jobs_.PostFor(0, std::move(job)); }
  void PostAfter(std::chrono::microseconds /*delay*/, std::function<void()> job) override { Post(std::move(job)); }
  void Stop() override { jobs_.Clear(); }

 private:
  JobQueue& jobs_;
};

struct NodeOptions {
  provider::SoftOptions soft;
  core::NodeLimits limits;
  // Limits of each uid's tenant.
  core::Limits tenant;
};

// The dependencies of the node, all controlled by the fuzzer.
struct FuzzGround {
  explicit FuzzGround(const provider::SoftOptions& options)
      : soft(options, random, std::make_unique<EngineQueue>(engine_jobs)) {}

  JobQueue workers;
  JobQueue reapers;
  JobQueue engine_jobs;
  FaultyOs os{SystemOs()};
  ManualClock clock;
  SeededRandom random{1};
  provider::SoftProvider soft;
  core::NullObserver observer;
};

// The real core and soft card in one thread, deterministic: no randomness, real time or other threads.
class FuzzNode : public FuzzGround, public core::WiredNode {
 public:
  explicit FuzzNode(const NodeOptions& options = {});

  static core::Caller CallerNumbered(uint64_t number, uid_t uid = 1000) {
    return {.process = {.high = 7, .low = number}, .uid = uid, .gid = uid};
  }
  std::shared_ptr<core::Session> Open(uint64_t process, uid_t uid = 1000);
  // Allocates `size` bytes, sealed unless `seal` is false.
  MemoryObjectId Allocate(core::Session& session, uint64_t size, bool seal = true);
  // Runs one job of each kind; false if there was none.
  bool RunOne();
  // Runs all jobs, including those that they queue.
  void Settle();
  // Ends all sessions and checks that they left nothing.
  void EndAll();
};

// Fails unless the node, the tenants and the card hold nothing and no file is mapped.
void CheckNothingHeld(const core::Node& node, const FaultyOs& os);
// Number of open descriptors of this process.
uint64_t OpenDescriptors();

}  // namespace rnicd::fuzz
