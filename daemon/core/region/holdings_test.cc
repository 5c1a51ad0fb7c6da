// Holdings of sessions, as a scrape adds them up.
#include "daemon/core/region/holdings.h"

#include "daemon/core/queue/queue_fixture_test.h"

namespace rnicd::core {
namespace {

class HoldingsTest : public ::testing::Test, protected Connected {
 protected:
  Holdings Held() const {
    Holdings holdings;
    owner.session->AddTo(holdings);
    return holdings;
  }
  uint64_t Pairs(QueuePairState state) const {
    uint64_t count = 0;
    for (const Holdings::QueuePairs& row : Held().queue_pairs) {
      EXPECT_EQ(row.adapter, "soft0");
      count += row.state == state ? row.count : 0;
    }
    return count;
  }
};

TEST_F(HoldingsTest, QueuePairsAreAddedUpByTheirState) {
  owner.Pair(/*context=*/73);
  EXPECT_EQ(Pairs(QueuePairState::kReadyToSend), 1u);
  EXPECT_EQ(Pairs(QueuePairState::kInit), 1u);
  ASSERT_TRUE(owner.session->Begin()->pairs().Flush(pair).ok());
  EXPECT_EQ(Pairs(QueuePairState::kReadyToSend), 0u);
  EXPECT_EQ(Pairs(QueuePairState::kError), 1u);
}

TEST_F(HoldingsTest, RowsOfTheSameKindBecomeOne) {
  Holdings holdings;
  holdings.AddPages("soft0", PageUse::kRegion, 4096, 3);
  holdings.AddPages("soft0", PageUse::kRegion, 4096, 2);
  holdings.AddPages("soft0", PageUse::kMapping, 4096, 1);
  holdings.AddPages("soft0", PageUse::kRegion, 2 << 20, 512);
  holdings.AddPages("soft1", PageUse::kRegion, 4096, 7);
  ASSERT_EQ(holdings.pages.size(), 4u);
  EXPECT_EQ(holdings.pages.front().count, 5u);
  holdings.AddRegion("soft0", true);
  holdings.AddRegion("soft0", false);
  holdings.AddRegion("soft0", true);
  ASSERT_EQ(holdings.regions.size(), 2u);
  EXPECT_EQ(holdings.regions.front().count, 2u);
}

}  // namespace
}  // namespace rnicd::core
