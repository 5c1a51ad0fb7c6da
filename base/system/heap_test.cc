#include "base/system/heap.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace rnicd {
namespace {

TEST(Heap, AllocatedBytesAreAtLeastThoseAskedFor) {
  for (const size_t bytes : {size_t{1}, size_t{100}, size_t{1} << 20}) {
    void* const memory = std::malloc(bytes);
    ASSERT_NE(memory, nullptr);
    EXPECT_GE(AllocatedBytes(memory), bytes);
    std::free(memory);
  }
}

// Allocated memory keeps its content.
TEST(Heap, ReturnFreedMemoryTakesNothingThatIsUsed) {
  auto* const kept = static_cast<char*>(std::malloc(4096));
  ASSERT_NE(kept, nullptr);
  kept[4095] = 'x';
  std::free(std::malloc(size_t{8} << 20));
  ReturnFreedMemory();
  EXPECT_EQ(kept[4095], 'x');
  std::free(kept);
}

}  // namespace
}  // namespace rnicd
