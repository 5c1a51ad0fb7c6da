#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <set>
#include <thread>
#include <type_traits>
#include <unordered_set>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/random.h"
#include "base/strong_id.h"
#include "base/unique_fd.h"
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

bool IsOpen(int fd) { return fcntl(fd, F_GETFD) != -1; }

TEST(UniqueFd, ClosesWhenItGoes) {
  int number = -1;
  {
    const UniqueFd fd(open("/dev/null", O_RDONLY));
    number = fd.get();
    EXPECT_TRUE(IsOpen(number));
  }
  EXPECT_FALSE(IsOpen(number));
}

TEST(UniqueFd, MovesItsDescriptorAndKeepsNone) {
  UniqueFd first(open("/dev/null", O_RDONLY));
  const int number = first.get();
  UniqueFd second(std::move(first));
  EXPECT_FALSE(first.valid());  // NOLINT(bugprone-use-after-move): tests the moved-from state.
  UniqueFd third(open("/dev/null", O_RDONLY));
  const int replaced = third.get();
  third = std::move(second);
  EXPECT_EQ(third.get(), number);
  EXPECT_FALSE(IsOpen(replaced)) << "assigning closes what was held";
  UniqueFd& alias = third;
  third = std::move(alias);
  EXPECT_TRUE(IsOpen(number)) << "assigning it to itself changes nothing";
}

TEST(UniqueFd, ReleaseLetsGoWithoutClosing) {
  UniqueFd fd(open("/dev/null", O_RDONLY));
  const int number = fd.Release();
  EXPECT_FALSE(fd.valid());
  EXPECT_TRUE(IsOpen(number));
  fd.Reset(number);
  fd.Reset(-1);
  EXPECT_FALSE(IsOpen(number));
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
