#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/os_fake.h"
#include "daemon/core/wired_node_test.h"
#include "provider/soft/soft_provider.h"
#include "tests/fuzz/sources.h"

namespace rnicd::fuzz {

// Work that waits until the fuzzer lets it go on, in the order it came.
class JobQueue final : public core::Executor {
 public:
  void PostFor(uint64_t /*owner*/, std::function<void()> job) override { jobs_.push_back(std::move(job)); }
  // False when there is none.
  bool RunOne() {
    if (jobs_.empty()) {
      return false;
    }
    const std::function<void()> job = std::move(jobs_.front());
    jobs_.pop_front();
    job();
    return true;
  }
  void Clear() { jobs_.clear(); }

 private:
  std::deque<std::function<void()>> jobs_;
};

// Likewise what the soft card does by itself.
class EngineQueue final : public provider::SoftEngine {
 public:
  // `jobs` outlives the engine.
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
  // Of each uid.
  core::Limits tenant;
};

// What the node stands on, all of it in the fuzzer's hands.
struct FuzzGround {
  explicit FuzzGround(const provider::SoftOptions& options)
      : soft(options, random, std::make_unique<EngineQueue>(engine_jobs)) {}

  JobQueue workers;
  JobQueue reapers;
  JobQueue engine_jobs;
  FaultyOs os{LinuxOs()};
  ManualClock clock;
  SeededRandom random{1};
  provider::SoftProvider soft;
  core::Observer observer;
};

// Core and the soft card in one thread: the real ones, with nothing left to chance, time or other threads.
class FuzzNode : public FuzzGround, public core::WiredNode {
 public:
  explicit FuzzNode(const NodeOptions& options = {});

  static core::Caller CallerNumbered(uint64_t number, uid_t uid = 1000) {
    return {.process = {.high = 7, .low = number}, .uid = uid, .gid = uid};
  }
  std::shared_ptr<core::Session> Open(uint64_t process, uid_t uid = 1000);
  // Of `size` bytes, sealed unless said otherwise.
  MemoryObjectId Allocate(core::Session& session, uint64_t size, bool seal = true);
  // Runs one job of each kind; false when there was none.
  bool RunOne();
  // Runs all jobs, and those that come of them.
  void Settle();
  // Ends all sessions and checks that nothing is left of them anywhere.
  void EndAll();
};

// Fails unless nothing is held: by the node, a tenant, the card, or of mappings.
void CheckNothingHeld(const core::Node& node, const FaultyOs& os);
// Descriptors this process has open.
uint64_t OpenDescriptors();

}  // namespace rnicd::fuzz
