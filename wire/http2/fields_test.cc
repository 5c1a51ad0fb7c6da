#include "wire/http2/fields.h"

#include <gtest/gtest.h>

namespace rnicd::http2 {
namespace {

TEST(NameValues, PointToTheFields) {
  const std::vector<HeaderField> fields = {{":path", "/s/m"}, {"te", ""}};
  const std::vector<nghttp2_nv> values = NameValues(fields);
  ASSERT_EQ(values.size(), 2u);
  EXPECT_EQ(TextOf(values[0].name, values[0].namelen), ":path");
  EXPECT_EQ(TextOf(values[0].value, values[0].valuelen), "/s/m");
  EXPECT_EQ(TextOf(values[1].value, values[1].valuelen), "");
}

TEST(WipingMemory, KeepsItsContentWhenItsSizeChanges) {
  const nghttp2_mem memory = WipingMemory();
  void* block = memory.realloc(nullptr, 4, nullptr);
  std::copy_n("text", 4, static_cast<char*>(block));
  for (const size_t size : {100'000, 4}) {
    block = memory.realloc(block, size, nullptr);
    EXPECT_EQ(std::string_view(static_cast<char*>(block), 4), "text");
  }
  memory.free(block, nullptr);
}

}  // namespace
}  // namespace rnicd::http2
