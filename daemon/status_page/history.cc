#include "daemon/status_page/history.h"

namespace rnicd::status_page {
namespace {

double Rate(uint64_t now, uint64_t before, double seconds) {
  return seconds > 0 ? static_cast<double>(now - before) / seconds : 0;
}

}  // namespace

void History::Observe(const core::Observation& observation) {
  if (observation.As<core::RpcEnded>() != nullptr) {
    Count(calls_);
  } else if (const auto* const registration = observation.As<core::RegistrationEnded>(); registration != nullptr) {
    if (registration->status.ok()) {
      Count(registrations_);
    }
  } else if (const auto* const decision = observation.As<core::Decision>(); decision != nullptr) {
    if (!decision->status.ok()) {
      Count(failures_);
    }
  }
}

History::Counts History::Read() const {
  return {.registrations = registrations_.load(std::memory_order_relaxed),
          .failures = failures_.load(std::memory_order_relaxed),
          .calls = calls_.load(std::memory_order_relaxed)};
}

void History::Sample(Instant now, const core::Ledger& node) {
  MutexLock lock(mutex_);
  const Counts counts = Read();
  const double seconds = sampled_.has_value() ? std::chrono::duration<double>(now - *sampled_).count() : 0;
  points_.push_back({.pinned_bytes = node.used(core::Resource::kPinnedBytes),
                     .registered_bytes = node.used(core::Resource::kRegisteredBytes),
                     .sessions = node.used(core::Resource::kSessions),
                     .registrations = Rate(counts.registrations, before_.registrations, seconds),
                     .failures = Rate(counts.failures, before_.failures, seconds),
                     .calls = Rate(counts.calls, before_.calls, seconds)});
  if (points_.size() > kMost) {
    points_.pop_front();
  }
  before_ = counts;
  sampled_ = now;
}

std::vector<Point> History::Points() const {
  MutexLock lock(mutex_);
  return {points_.begin(), points_.end()};
}

Sampler::Sampler(History& history, const Clock& clock, const core::Ledger& node, std::chrono::nanoseconds interval)
    : history_(history), clock_(clock), node_(node), interval_(interval), thread_([this] { Run(); }) {}

Sampler::~Sampler() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.NotifyAll();
  thread_.join();
}

// Waits in real time even with a test's clock: one that stands still would otherwise make this loop spin.
void Sampler::Run() {
  auto next = std::chrono::steady_clock::now();
  MutexLock lock(mutex_);
  while (!stopping_) {
    history_.Sample(clock_.Now(), node_);
    next += interval_;
    while (!stopping_ && changed_.WaitUntil(mutex_, next)) {
    }
  }
}

}  // namespace rnicd::status_page
