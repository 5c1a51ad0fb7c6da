#include "provider/engine/invalidatable.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "provider/api/requests_test.h"

namespace rnicd::provider {
namespace {

using Ended = std::vector<uint32_t>;

// A window that records what is asked of it.
struct RecordedWindow final : Invalidatable {
  explicit RecordedWindow(Ended& record) : ended(record) {}
  bool InvalidateToken(uint32_t token, std::optional<uint64_t> arrived_at) override {
    EXPECT_FALSE(arrived_at.has_value()) << "the daemon itself wants it";
    ended.push_back(token);
    return true;
  }
  Ended& ended;
};

TEST(BoundWindows, TheEndInvalidatesEachWindowsLastTokenOnce) {
  Ended ended;
  BoundWindows bound;
  const auto window = std::make_shared<RecordedWindow>(ended);
  bound.Insert(window, 1);
  bound.Insert(window, 2);
  bound.End();
  EXPECT_EQ(ended, Ended{2});
  bound.End();
  EXPECT_EQ(ended, Ended{2});
}

TEST(BoundWindows, AWindowThatIsGoneIsForgotten) {
  Ended ended;
  BoundWindows bound;
  const auto kept = std::make_shared<RecordedWindow>(ended);
  bound.Insert(kept, 1);
  for (uint32_t token = 2; token < 500; ++token) {
    bound.Insert(std::make_shared<RecordedWindow>(ended), token);
  }
  bound.End();
  EXPECT_EQ(ended, Ended{1});
}

TEST(TokenToInvalidate, OnlyAReadThatInvalidatesHasOne) {
  const Entries entries{{.length = 8, .token = LocalToken{7}}, {.length = 8, .token = LocalToken{8}}};
  std::byte own{};
  EXPECT_EQ(TokenToInvalidate(Request(1, entries, ReadWork{.local_invalidate = true})), LocalToken{7});
  EXPECT_EQ(TokenToInvalidate(Request(1, entries, ReadWork{})), std::nullopt);
  EXPECT_EQ(TokenToInvalidate(Request(1, entries, WriteWork{})), std::nullopt);
  EXPECT_EQ(TokenToInvalidate(Request(1, {}, ReadWork{.local_invalidate = true})), std::nullopt);
  EXPECT_EQ(TokenToInvalidate(Request(1, {{.host = {&own, 1}, .length = 1}}, ReadWork{.local_invalidate = true})),
            std::nullopt);
}

}  // namespace
}  // namespace rnicd::provider
