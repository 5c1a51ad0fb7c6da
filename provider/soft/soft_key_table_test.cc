#include "provider/soft/soft_key_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>
#include <thread>
#include <vector>

#include "base/status.h"
#include "provider/soft/soft_region_memory.h"

namespace rnicd::provider {
namespace {

std::shared_ptr<SoftRegionMemory> AnyMemory() {
  return std::make_shared<SoftRegionMemory>(SoftRegionMemory::Shape{.domain = 1, .base = {4096}, .length = 4096});
}

SoftKeyTable::Keys Insert(SoftKeyTable& table) {
  auto keys = table.Insert(AnyMemory());
  EXPECT_TRUE(keys.ok()) << keys.status();
  return *keys;
}

TEST(SoftKeyTable, FindsWhatWasInsertedByEitherKey) {
  KernelRandom random;
  SoftKeyTable table(0, random);
  const auto memory = AnyMemory();
  const auto keys = table.Insert(memory);
  ASSERT_TRUE(keys.ok());
  EXPECT_EQ(table.Find(keys->local), memory);
  EXPECT_EQ(table.Find(keys->remote), memory);
  EXPECT_EQ(table.size(), 1u);
}

TEST(SoftKeyTable, TheLocalAndTheRemoteKeyNeverPassForEachOther) {
  KernelRandom random;
  SoftKeyTable table(0, random);
  for (int index = 0; index < 1000; ++index) {
    const SoftKeyTable::Keys keys = Insert(table);
    ASSERT_NE(keys.local.value, keys.remote.value);
    EXPECT_EQ(table.Find(RemoteToken{keys.local.value}), nullptr);
    EXPECT_EQ(table.Find(LocalToken{keys.remote.value}), nullptr);
  }
}

TEST(SoftKeyTable, ARemovedKeyIsDeadAndRemovingTwiceCountsOnce) {
  KernelRandom random;
  SoftKeyTable table(0, random);
  const SoftKeyTable::Keys keys = Insert(table);
  table.Remove(keys.local);
  EXPECT_EQ(table.Find(keys.local), nullptr);
  EXPECT_EQ(table.Find(keys.remote), nullptr);
  table.Remove(keys.local);
  EXPECT_EQ(table.size(), 0u);
}

TEST(SoftKeyTable, AnotherVariantOfALivingIndexIsNoKey) {
  KernelRandom random;
  SoftKeyTable table(0, random);
  const SoftKeyTable::Keys keys = Insert(table);
  int alive = 0;
  for (uint32_t variant = 0; variant < 256; ++variant) {
    const uint32_t guess = (keys.local.value & ~uint32_t{0xff}) | variant;
    alive += table.Find(LocalToken{guess}) != nullptr ? 1 : 0;
    alive += table.Find(RemoteToken{guess}) != nullptr ? 1 : 0;
  }
  EXPECT_EQ(alive, 2);
}

TEST(SoftKeyTable, IsFullAtItsLimitAndHasRoomAgainAfterARemoval) {
  KernelRandom random;
  SoftKeyTable table(3, random);
  const SoftKeyTable::Keys first = Insert(table);
  Insert(table);
  Insert(table);
  EXPECT_TRUE(FailedWith(table.Insert(AnyMemory()).status(), ErrorReason::DEVICE_OUT_OF_RESOURCES));
  EXPECT_EQ(table.size(), 3u);
  table.Remove(first.local);
  EXPECT_TRUE(table.Insert(AnyMemory()).ok());
}

TEST(SoftKeyTable, KeysAreUniqueAndNeverZero) {
  KernelRandom random;
  SoftKeyTable table(0, random);
  std::set<uint32_t> seen;
  for (int index = 0; index < 20000; ++index) {
    const SoftKeyTable::Keys keys = Insert(table);
    ASSERT_TRUE(seen.insert(keys.local.value).second);
    ASSERT_TRUE(seen.insert(keys.remote.value).second);
  }
  EXPECT_FALSE(seen.contains(0));
}

TEST(SoftKeyTable, ARandomSourceThatRepeatsItselfStillGivesUniqueKeys) {
  class Repeating final : public RandomSource {
   public:
    uint64_t Next() override { return (next_++ / 4) & 0xff; }

   private:
    uint64_t next_ = 0;
  } random;
  SoftKeyTable table(0, random);
  std::set<uint32_t> seen;
  for (int index = 0; index < 200; ++index) {
    EXPECT_TRUE(seen.insert(Insert(table).local.value).second);
  }
}

TEST(SoftKeyTable, KeysThatLeadNowhereTakeRoomAllTheSame) {
  KernelRandom random;
  SoftKeyTable table(1, random);
  const auto keys = table.Insert(nullptr);
  ASSERT_TRUE(keys.ok());
  EXPECT_EQ(table.Find(keys->local), nullptr);
  EXPECT_EQ(table.Find(keys->remote), nullptr);
  EXPECT_TRUE(FailedWith(table.Insert(nullptr).status(), ErrorReason::DEVICE_OUT_OF_RESOURCES));
}

TEST(SoftKeyTable, ReplaceLeadsElsewhereUnderAnotherRemoteKey) {
  KernelRandom random;
  SoftKeyTable table(0, random);
  const SoftKeyTable::Keys first = Insert(table);
  const auto memory = AnyMemory();
  const SoftKeyTable::Keys next{first.local, SoftKeyTable::NextVariant(first.remote)};
  table.Replace(next, memory);
  EXPECT_EQ(table.Find(next.local), memory);
  EXPECT_EQ(table.Find(next.remote), memory);
  EXPECT_EQ(table.Find(first.remote), nullptr) << "the key before it is dead";
  EXPECT_EQ(table.size(), 1u);
  table.Replace(next, nullptr);
  EXPECT_EQ(table.Find(next.local), nullptr);
  EXPECT_EQ(table.Find(next.remote), nullptr);
  EXPECT_EQ(table.size(), 1u) << "the index stays taken";
}

TEST(SoftKeyTable, ReplaceBringsNoDeadKeyBack) {
  KernelRandom random;
  SoftKeyTable table(0, random);
  const SoftKeyTable::Keys keys = Insert(table);
  table.Remove(keys.local);
  table.Replace(keys, AnyMemory());
  EXPECT_EQ(table.Find(keys.local), nullptr);
  EXPECT_EQ(table.size(), 0u);
}

TEST(SoftKeyTable, ReplaceLetsGoOfWhatWasThere) {
  KernelRandom random;
  SoftKeyTable table(0, random);
  auto memory = AnyMemory();
  const std::weak_ptr<SoftRegionMemory> weak = memory;
  const auto keys = table.Insert(std::move(memory));
  ASSERT_TRUE(keys.ok());
  EXPECT_FALSE(weak.expired());
  table.Replace(*keys, nullptr);
  EXPECT_TRUE(weak.expired());
}

TEST(SoftKeyTable, TheNextVariantComesBackAfter128StepsAndStaysARemoteKeyOfItsIndex) {
  for (const uint32_t start : {0x00000180u, 0x123456ffu, 0xfffeffc0u}) {
    std::set<uint32_t> seen;
    RemoteToken token{start};
    for (int step = 0; step < 128; ++step) {
      token = SoftKeyTable::NextVariant(token);
      EXPECT_EQ(token.value >> 8, start >> 8);
      EXPECT_EQ(token.value & 0x80, 0x80u) << "it would pass for a local key";
      EXPECT_TRUE(seen.insert(token.value).second) << "a key came back early";
    }
    EXPECT_EQ(token.value, start);
  }
}

TEST(SoftKeyTable, TheIndicesOfPrivilegedTokensAndZeroAreNeverDrawn) {
  class Scripted final : public RandomSource {
   public:
    uint64_t Next() override { return numbers_[next_++ % numbers_.size()]; }

   private:
    // Nothing, the first and the last reserved index, and the one before them.
    const std::array<uint64_t, 4> numbers_{0, 0xff0000, 0xffffff, 0xfeffff};
    size_t next_ = 0;
  } random;
  SoftKeyTable table(0, random);
  EXPECT_EQ(Insert(table).local.value >> 8, 0xfeffffu);
}

TEST(SoftKeyTable, APrivilegedTokenIsItsDomainsOwnAndLeadsNowhere) {
  KernelRandom random;
  SoftKeyTable table(0, random);
  std::set<uint32_t> seen;
  for (uint64_t domain = 1; domain <= 65536; ++domain) {
    const LocalToken token = SoftKeyTable::PrivilegedTokenOf(domain);
    ASSERT_NE(token.value, 0u);
    ASSERT_TRUE(seen.insert(token.value).second) << domain;
  }
  for (int index = 0; index < 100000; ++index) {
    Insert(table);
  }
  for (const uint32_t token : seen) {
    ASSERT_EQ(table.Find(LocalToken{token}), nullptr);
    ASSERT_EQ(table.Find(RemoteToken{token}), nullptr);
  }
}

// A key reveals nothing about the next: the owners of two neighbouring registrations cannot guess each other.
TEST(SoftKeyTable, NeighbouringKeysHaveNoCommonStep) {
  KernelRandom random;
  SoftKeyTable table(0, random);
  std::set<uint32_t> steps;
  uint32_t previous = Insert(table).local.value >> 8;
  int rising = 0;
  constexpr int kKeys = 1000;
  for (int index = 0; index < kKeys; ++index) {
    const uint32_t current = Insert(table).local.value >> 8;
    steps.insert(current - previous);
    rising += current > previous ? 1 : 0;
    previous = current;
  }
  EXPECT_GT(steps.size(), size_t{kKeys} * 9 / 10);
  EXPECT_NEAR(rising, kKeys / 2.0, kKeys / 8.0);
}

// Over 2^16 keys: every index bit is a fair coin, and index bytes come equally often, up to six standard deviations.
TEST(SoftKeyTable, TheIndexBitsAreNearMaximalEntropy) {
  KernelRandom random;
  SoftKeyTable table(0, random);
  constexpr uint32_t kKeys = 1u << 16;
  std::array<uint32_t, 24> ones{};
  std::array<std::array<uint32_t, 256>, 3> bytes{};
  for (uint32_t key = 0; key < kKeys; ++key) {
    const uint32_t index = Insert(table).local.value >> 8;
    for (size_t bit = 0; bit < ones.size(); ++bit) {
      ones[bit] += (index >> bit) & 1;
    }
    for (size_t byte = 0; byte < bytes.size(); ++byte) {
      ++bytes[byte][(index >> (8 * byte)) & 0xff];
    }
  }
  for (const uint32_t count : ones) {
    EXPECT_NEAR(count, kKeys / 2.0, 6 * std::sqrt(kKeys) / 2);
  }
  for (const auto& counts : bytes) {
    const double most = *std::max_element(counts.begin(), counts.end());
    EXPECT_GT(-std::log2(most / kKeys), 7.4) << "bits of min-entropy in an index byte";
  }
}

TEST(SoftKeyTable, RacingInsertsAndRemovalsKeepTheCount) {
  KernelRandom random;
  SoftKeyTable table(1000, random);
  std::vector<std::thread> threads;
  for (int index = 0; index < 4; ++index) {
    threads.emplace_back([&table] {
      for (int round = 0; round < 2000; ++round) {
        const SoftKeyTable::Keys keys = Insert(table);
        EXPECT_NE(table.Find(keys.remote), nullptr);
        table.Remove(keys.local);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(table.size(), 0u);
}

}  // namespace
}  // namespace rnicd::provider
