#include "daemon/core/memory/fresh_memory.h"

#include "base/system/faulty_os.h"
#include "daemon/core/session/core_fixture_test.h"

namespace rnicd::core {
namespace {

constexpr uint64_t kFreshBytes = 64 * kPage;

class FreshMemoryTest : public ::testing::Test {
 protected:
  FreshMemory Made(const PageChoice& pages = {}) {
    auto memory = FreshMemory::Create(os_, kFreshBytes, pages);
    EXPECT_TRUE(memory.ok()) << memory.status();
    while (*memory->MakeNext(16 * kPage)) {
    }
    return *std::move(memory);
  }
  uint64_t PopulatedBytes(const FreshMemory& memory) { return os_.Inspect(memory.file())->populated_bytes; }

  FaultyOs os_{SystemOs()};
};

TEST_F(FreshMemoryTest, ItsPagesAreMadeAPieceAtATime) {
  auto memory = FreshMemory::Create(os_, kFreshBytes, {});
  ASSERT_TRUE(memory.ok());
  EXPECT_EQ(PopulatedBytes(*memory), 0u);
  EXPECT_TRUE(*memory->MakeNext(16 * kPage));
  EXPECT_EQ(PopulatedBytes(*memory), 16 * kPage);
  EXPECT_EQ(memory->populated(), 0u) << "not mapped yet";
  EXPECT_EQ(Made().populated(), kFreshBytes);
}

TEST_F(FreshMemoryTest, CutItLosesItsEndAndKeepsItsStart) {
  FreshMemory memory = Made();
  memory.mapping()[5] = std::byte{5};
  ASSERT_TRUE(memory.FitTo(3 * kPage).ok());
  EXPECT_EQ(memory.size(), 3 * kPage);
  EXPECT_EQ(memory.populated(), 3 * kPage);
  EXPECT_EQ(PopulatedBytes(memory), 3 * kPage);
  EXPECT_EQ(memory.mapping()[5], std::byte{5});
}

TEST_F(FreshMemoryTest, MadeLongerTheNewPartHasNoPages) {
  FreshMemory memory = Made({.page_bytes = kPage, .numa_node = 0});
  ASSERT_TRUE(memory.FitTo(2 * kFreshBytes).ok());
  EXPECT_EQ(memory.size(), 2 * kFreshBytes);
  EXPECT_EQ(memory.populated(), kFreshBytes);
  EXPECT_EQ(PopulatedBytes(memory), kFreshBytes);
  memory.mapping()[2 * kFreshBytes - 1] = std::byte{1};
}

TEST_F(FreshMemoryTest, WhicheverCallFailsInFitToNothingIsLeft) {
  for (const char* const method : {"Resize", "Remap", "BindToNumaNode"}) {
    {
      FreshMemory memory = Made({.page_bytes = kPage, .numa_node = 0});
      os_.FailNext(method, MakeError(ErrorReason::MEMORY_PAGES_UNAVAILABLE), 1);
      EXPECT_FALSE(memory.FitTo(2 * kFreshBytes).ok()) << method;
    }
    EXPECT_EQ(os_.live_mappings(), 0u) << method;
  }
}

}  // namespace
}  // namespace rnicd::core
