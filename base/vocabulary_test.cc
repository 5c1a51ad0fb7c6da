#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <type_traits>
#include <unordered_set>
#include <vector>

#include "base/clock.h"
#include "base/files/unique_fd.h"
#include "base/mutex.h"
#include "base/secrets/random.h"
#include "base/strong_id.h"
#include "base/units.h"

namespace rnicd {
namespace {

static_assert(!std::is_convertible_v<SessionId, MemoryObjectId>);
static_assert(!std::is_convertible_v<uint64_t, SessionId>);
static_assert(!std::is_convertible_v<LocalToken, RemoteToken>);
static_assert(!std::is_convertible_v<LogicalAddress, VirtualAddress>);
static_assert(!std::is_convertible_v<VirtualAddress, LogicalAddress>);
static_assert(!std::is_copy_constructible_v<UniqueFd>);

// True when all types differ.
template <typename First, typename... Rest>
constexpr bool AllDiffer() {
  if constexpr (sizeof...(Rest) == 0) {
    return true;
  } else {
    return (!std::is_same_v<First, Rest> && ...) && AllDiffer<Rest...>();
  }
}
static_assert(AllDiffer<SessionId, AdapterId, ProtectionDomainId, MemoryObjectId, MemoryRegionId, LogicalMappingId,
                        CompletionQueueId, QueuePairId, MemoryWindowId>());
static_assert(!AllDiffer<SessionId, AdapterId, SessionId>());

TEST(StrongId, ComparesAndHashesByValue) {
  std::unordered_set<MemoryRegionId> ids = {{1}, {2}, {1}};
  EXPECT_EQ(ids.size(), 2u);
  EXPECT_TRUE(ids.contains(MemoryRegionId{2}));
  EXPECT_LT(SessionId{1}, SessionId{2});
  EXPECT_EQ(AdapterId{}, AdapterId{0});
}

TEST(KernelRandom, NumbersDoNotRepeatAcrossThreadsAndBuffers) {
  KernelRandom random;
  Mutex mutex;
  std::set<uint64_t> seen;
  std::vector<std::thread> threads;
  for (int index = 0; index < 4; ++index) {
    threads.emplace_back([&] {
      for (int round = 0; round < 1000; ++round) {
        const uint64_t number = random.Next();
        MutexLock lock(mutex);
        EXPECT_TRUE(seen.insert(number).second);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(seen.size(), 4000u);
  EXPECT_FALSE(seen.contains(0));
}

TEST(KernelRandom, TwoSourcesDiffer) {
  KernelRandom first;
  KernelRandom second;
  EXPECT_NE(first.Next(), second.Next());
}

TEST(SteadyClock, DoesNotGoBack) {
  const SteadyClock clock;
  const Instant first = clock.Now();
  EXPECT_GE(clock.Now(), first);
}

TEST(ConditionVariable, AWaitEndsAtItsDeadline) {
  Mutex mutex;
  ConditionVariable condition;
  MutexLock lock(mutex);
  const Instant deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(5);
  while (condition.WaitUntil(mutex, deadline)) {
  }
  EXPECT_GE(std::chrono::steady_clock::now(), deadline);
}

}  // namespace
}  // namespace rnicd
