#pragma once

// Shared by the tests with many threads: a seed, and records of accepted and completed requests.

#include <cstdlib>
#include <map>
#include <random>
#include <tuple>
#include <vector>

#include "daemon/core/session/core_fixture_test.h"

namespace rnicd::core {

using Random = std::mt19937_64;

// How many threads use the same sessions.
inline constexpr int kThreads = 4;

// RNICD_SEED repeats a run, as far as the threads' order allows.
inline uint64_t Seed() {
  constexpr uint64_t kDefaultSeed = 20260801;
  const char* const text = std::getenv("RNICD_SEED");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : kDefaultSeed;
}

// Which requests were accepted as pending, and how often each was completed.
// Threads: safe.
class Books {
 public:
  uint64_t Open() { return next_.fetch_add(1); }
  void Accepted(uint64_t request) {
    MutexLock lock(mutex_);
    accepted_[request] += 1;
  }
  void Completed(uint64_t request) {
    MutexLock lock(mutex_);
    completed_[request] += 1;
  }
  void ExpectBalanced() const {
    MutexLock lock(mutex_);
    EXPECT_EQ(accepted_, completed_);
  }
  size_t size() const {
    MutexLock lock(mutex_);
    return accepted_.size();
  }

 private:
  std::atomic<uint64_t> next_{1};
  mutable Mutex mutex_;
  std::map<uint64_t, int> accepted_ RNICD_GUARDED_BY(mutex_);
  std::map<uint64_t, int> completed_ RNICD_GUARDED_BY(mutex_);
};

// Every id of these types that ever existed, so that dead ones are used too.
// Threads: safe.
template <typename... Things>
class Memories {
 public:
  template <typename T>
  void Remember(T thing) {
    MutexLock lock(mutex_);
    std::get<std::vector<T>>(all_).push_back(std::move(thing));
  }
  // One of the latest ids, or one that never existed.
  template <typename T>
  T Any(Random& random) const {
    MutexLock lock(mutex_);
    const auto& all = std::get<std::vector<T>>(all_);
    const size_t recent = std::min<size_t>(all.size(), 4);
    return recent == 0 ? T{} : all[all.size() - 1 - random() % recent];
  }
  // Any id, mostly an old one.
  template <typename T>
  T AnyOld(Random& random) const {
    MutexLock lock(mutex_);
    const auto& all = std::get<std::vector<T>>(all_);
    return all.empty() ? T{} : all[random() % all.size()];
  }
  template <typename T>
  std::vector<T> All() const {
    MutexLock lock(mutex_);
    return std::get<std::vector<T>>(all_);
  }

 private:
  mutable Mutex mutex_;
  std::tuple<std::vector<Things>...> all_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::core
