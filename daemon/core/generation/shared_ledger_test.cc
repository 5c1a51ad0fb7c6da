// Ledgers of an owner that several generations of the daemon serve.
#include <functional>
#include <thread>
#include <vector>

#include "daemon/core/session/race_fixture_test.h"
#include "daemon/core/tenant/ledger.h"

namespace rnicd::core {
namespace {

constexpr Resource kCapped = Resource::kPinnedBytes;
// The moments that matter are a few instructions long.
constexpr int kCapRounds = 300'000;

std::shared_ptr<Ledger> LedgerOf(uint64_t limit) {
  Limits limits;
  limits[kCapped] = limit;
  return std::make_shared<Ledger>(limits, nullptr);
}

TEST(SharedLedger, ATakeAboveTheCapIsRefusedAsByTheLimitAndRemembered) {
  const auto ledger = LedgerOf(100);
  ASSERT_EQ(ledger->AddForeign(kCapped, 20), 20u);
  ASSERT_EQ(ledger->SetCap(kCapped, 30), 30u);
  ASSERT_TRUE(ledger->Take(kCapped, 30).ok());
  ExpectFigures(ledger->Take(kCapped, 5), ErrorReason::QUOTA_PINNED_BYTES, 50, 50, 5);
  EXPECT_FALSE(ledger->Take(kCapped, 2).ok());
  EXPECT_EQ(ledger->TakeRefused(kCapped), 35u);
  EXPECT_EQ(ledger->TakeRefused(kCapped), 0u);
  ExpectFigures(ledger->Take(kCapped, 51), ErrorReason::QUOTA_PINNED_BYTES, 100, 50, 51);
  EXPECT_EQ(ledger->TakeRefused(kCapped), 0u) << "no cap would have helped";
  EXPECT_EQ(ledger->SetCap(kCapped, Ledger::kNoCap), Ledger::kNoCap);
  EXPECT_TRUE(ledger->Take(kCapped, 50).ok());
}

TEST(SharedLedger, ACapIsNotLowerThanWhatIsHeld) {
  const auto ledger = LedgerOf(0);
  ASSERT_TRUE(ledger->Take(kCapped, 10).ok());
  EXPECT_EQ(ledger->SetCap(kCapped, 5), 10u);
  EXPECT_FALSE(ledger->Take(kCapped, 1).ok());
  ledger->Give(kCapped, 4);
  EXPECT_EQ(ledger->SetCap(kCapped, 5), 6u);
  EXPECT_EQ(ledger->cap(kCapped), 6u);
}

TEST(SharedLedger, ForeignUseCountsAgainstTheLimit) {
  const auto ledger = LedgerOf(100);
  ASSERT_TRUE(ledger->Take(kCapped, 30).ok());
  EXPECT_EQ(ledger->TakeForeign(kCapped, 60), 60u);
  EXPECT_EQ(ledger->used(kCapped), 90u);
  EXPECT_EQ(ledger->own(kCapped), 30u);
  EXPECT_EQ(ledger->TakeForeign(kCapped, 60), 10u) << "as much as fits";
  ExpectFigures(ledger->Take(kCapped, 1), ErrorReason::QUOTA_PINNED_BYTES, 100, 100, 1);
  ledger->Give(kCapped, 30);
  EXPECT_FALSE(ledger->empty());
  ledger->GiveForeign(kCapped, 70);
  EXPECT_TRUE(ledger->empty());
}

TEST(SharedLedger, ForeignUseAboveTheLimitStaysAndNothingIsAdded) {
  const auto ledger = LedgerOf(100);
  EXPECT_EQ(ledger->AddForeign(kCapped, 200), 200u);
  EXPECT_EQ(ledger->TakeForeign(kCapped, 1), 0u);
  ExpectFigures(ledger->Take(kCapped, 1), ErrorReason::QUOTA_PINNED_BYTES, 100, 200, 1);
  EXPECT_EQ(ledger->AddForeign(kCapped, UINT64_MAX), UINT64_MAX - 200) << "less, where the sum would wrap";
  EXPECT_EQ(ledger->used(kCapped), UINT64_MAX);
  const auto unlimited = LedgerOf(0);
  ASSERT_TRUE(unlimited->Take(kCapped, 10).ok());
  EXPECT_EQ(unlimited->TakeForeign(kCapped, UINT64_MAX), UINT64_MAX - 10);
  EXPECT_FALSE(unlimited->Take(kCapped, 1).ok());
}

// What threads have taken, a little less while they take and give.
struct Takers {
  explicit Takers(std::function<absl::Status(uint64_t)> take, std::function<void(uint64_t)> give) {
    for (uint64_t index = 0; index < 2; ++index) {
      threads.emplace_back([this, index, take, give] {
        Random random(Seed() + index);
        uint64_t before = 0;
        while (!done.load()) {
          const uint64_t amount = 1 + random() % 40;
          const uint64_t taken = take(amount).ok() ? amount : 0;
          held.fetch_add(taken);
          held.fetch_sub(before);
          give(before);
          before = taken;
        }
        held.fetch_sub(before);
        give(before);
      });
    }
  }
  ~Takers() {
    done.store(true);
    for (std::thread& thread : threads) {
      thread.join();
    }
  }

  std::atomic<bool> done{false};
  std::atomic<uint64_t> held{0};
  std::vector<std::thread> threads;
};

TEST(SharedLedger, RacingTakersNeverHoldMoreThanTheCap) {
  const auto ledger = LedgerOf(0);
  uint64_t cap = ledger->SetCap(kCapped, 100);
  {
    const Takers takers([&](uint64_t amount) { return ledger->TakeAlone(kCapped, amount); },
                        [&](uint64_t amount) { ledger->GiveAlone(kCapped, amount); });
    Random random(Seed());
    for (int round = 0; round < kCapRounds; ++round) {
      const uint64_t most = random() % 2 * (random() % 120);
      const uint64_t now = ledger->SetCap(kCapped, most);
      ASSERT_GE(now, most);
      ASSERT_LE(now, std::max(cap, most)) << "nothing else raises it";
      // Sometimes at once the next cap: a take may still have to be undone because of this one.
      for (uint64_t looks = random() % 20; looks > 0; --looks) {
        ASSERT_LE(takers.held.load(), now);
      }
      cap = now;
    }
  }
  EXPECT_TRUE(ledger->empty());
}

TEST(SharedLedger, RacingTakersOfTwoGenerationsNeverPassTheLimit) {
  constexpr uint64_t kLimit = 100;
  const auto ledger = LedgerOf(kLimit);
  uint64_t most = 0;
  {
    const Takers takers([&](uint64_t amount) { return ledger->TakeAlone(kCapped, amount); },
                        [&](uint64_t amount) { ledger->GiveAlone(kCapped, amount); });
    Random random(Seed());
    for (int round = 0; round < kCapRounds; ++round) {
      const uint64_t foreign = ledger->TakeForeign(kCapped, random() % 80);
      ASSERT_LE(takers.held.load() + foreign, kLimit);
      most = std::max(most, foreign);
      ledger->GiveForeign(kCapped, foreign);
    }
  }
  EXPECT_GT(most, 0u);
  EXPECT_TRUE(ledger->empty());
}

}  // namespace
}  // namespace rnicd::core
