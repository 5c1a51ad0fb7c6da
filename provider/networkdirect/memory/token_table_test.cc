#include "provider/networkdirect/memory/token_table.h"

#include <gtest/gtest.h>

#include <vector>

namespace rnicd::provider {
namespace {

// Numbers from a list.
class ListedNumbers final : public RandomSource {
 public:
  explicit ListedNumbers(std::vector<uint64_t> numbers) : numbers_(std::move(numbers)) {}
  uint64_t Next() override { return numbers_.at(next_++); }

 private:
  const std::vector<uint64_t> numbers_;
  size_t next_ = 0;
};

TEST(TokenTable, ATokenIsNeitherZeroNorTaken) {
  ListedNumbers numbers({0, uint64_t{7} << 32, 5, 5, 6, 5});
  TokenTable table(numbers);
  EXPECT_EQ(table.Reserve(), 5u) << "numbers whose lower half is 0 are skipped";
  EXPECT_EQ(table.Reserve(), 6u);
  table.Remove(5);
  EXPECT_EQ(table.Reserve(), 5u);
}

TEST(TokenTable, ATokenReachesWhatItWasSetToUntilThatIsTakenBack) {
  ListedNumbers numbers({5});
  TokenTable table(numbers);
  const auto range = std::make_shared<const CardRange>(CardRange{.length = 3});
  table.Set(5, {.range = range, .owner = {}});
  EXPECT_EQ(table.Find(5).range, nullptr) << "it is not reserved";
  EXPECT_EQ(table.Reserve(), 5u);
  EXPECT_EQ(table.Find(5).range, nullptr);
  table.Set(5, {.range = range, .owner = {}});
  EXPECT_EQ(table.Find(5).range, range);
  table.Set(5, {});
  EXPECT_EQ(table.Find(5).range, nullptr);
  table.Set(5, {.range = range, .owner = {}});
  table.Remove(5);
  EXPECT_EQ(table.Find(5).range, nullptr);
}

}  // namespace
}  // namespace rnicd::provider
