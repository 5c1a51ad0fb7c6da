#include <fcntl.h>

#include "daemon/core/session/session_rate_fixture_test.h"

namespace rnicd::core {
namespace {

TEST_F(SessionRateTest, HolesThatASealFillsCountAndPagesThatWereThereDoNot) {
  constexpr uint64_t kBytes = kPopulatedBytesPerRequest * 2;
  const auto sealed = [&](bool with_holes) {
    const auto memory =
        *second_.session->Begin()->memory().Find(second_.session->Begin()->memory().Import(kBytes)->memory);
    UniqueFd file = MemoryFile(kBytes);
    EXPECT_EQ(fallocate(file.get(), 0, 0, with_holes ? 1 : kBytes), 0);
    EXPECT_TRUE(memory->Attach(std::move(file)).ok());
    Awaited<absl::Status> done;
    const auto progress =
        second_.session->Begin()->memory().Seal(memory, [&](const absl::Status& status) { done.Set(status); });
    EXPECT_TRUE(progress.succeeded() || (progress.pending() && done.Get()->ok()));
  };
  sealed(/*with_holes=*/false);
  EXPECT_EQ(Wait(second_), std::nullopt);
  world_.clock.Advance(std::chrono::seconds(1));
  sealed(/*with_holes=*/true);
  EXPECT_EQ(Wait(second_), std::nullopt) << "a page less than two requests' worth";
  EXPECT_NE(Wait(second_), std::nullopt);
}

}  // namespace
}  // namespace rnicd::core
