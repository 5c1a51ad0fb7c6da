#include "provider/engine/byte_runs.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace rnicd::provider {
namespace {

using Bytes = std::span<std::byte>;

TEST(JoinRuns, JoinsNeighboursInOrderAndNothingElse) {
  std::byte memory[100];
  const auto run = [&](size_t begin, size_t end) { return Bytes(memory + begin, end - begin); };
  const auto joined = [](std::vector<Bytes> runs) {
    std::vector<std::pair<const std::byte*, size_t>> answer;
    for (const Bytes joined_run : JoinRuns(runs)) {
      answer.emplace_back(joined_run.data(), joined_run.size());
    }
    return answer;
  };
  using Answer = std::vector<std::pair<const std::byte*, size_t>>;
  EXPECT_EQ(joined({}), Answer{});
  EXPECT_EQ(joined({run(0, 10), run(10, 20), run(20, 30)}), (Answer{{memory, 30}}));
  EXPECT_EQ(joined({run(10, 20), run(0, 10)}), (Answer{{memory + 10, 10}, {memory, 10}}));
  EXPECT_EQ(joined({run(0, 10), run(11, 20)}), (Answer{{memory, 10}, {memory + 11, 9}}));
  EXPECT_EQ(joined({run(5, 10), run(5, 10)}), (Answer{{memory + 5, 5}, {memory + 5, 5}}));
  EXPECT_EQ(joined({run(0, 10), run(50, 50), run(10, 12)}), (Answer{{memory, 12}})) << "an empty run is none";
}

TEST(SliceRuns, TakesTheBytesAcrossRunsAndSkipsEmptyOnes) {
  std::byte memory[100];
  const std::vector<Bytes> runs = {Bytes(memory, 10), Bytes(memory + 10, 20), Bytes(memory + 40, size_t{0}),
                                   Bytes(memory + 50, 10)};
  const std::vector<Bytes> slice = SliceRuns(runs, 5, 30);
  ASSERT_EQ(slice.size(), 3u);
  EXPECT_EQ(slice[0].data(), memory + 5);
  EXPECT_EQ(slice[0].size(), 5u);
  EXPECT_EQ(slice[1].size(), 20u);
  EXPECT_EQ(slice[2].data(), memory + 50);
  EXPECT_EQ(slice[2].size(), 5u);
}

}  // namespace
}  // namespace rnicd::provider
