#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <set>
#include <string>

#include "provider/verbs/card/verbs_api.h"

namespace rnicd::provider {
namespace {

// Holds with and without cards: the library lists the devices that the kernel shows and that may be opened.
TEST(RdmaCore, ListsNoCardThatTheKernelDoesNotShow) {
  std::set<std::string> shown;
  std::error_code absent;
  for (const auto& entry : std::filesystem::directory_iterator("/sys/class/infiniband", absent)) {
    shown.insert(entry.path().filename());
  }
  for (const CardId& card : RdmaCore().cards().List()) {
    EXPECT_TRUE(shown.contains(card.name)) << card.name;
    EXPECT_TRUE(RdmaCore().cards().Has(card)) << card.name;
  }
}

TEST(RdmaCore, ACardThatIsNotThereCannotBeOpened) {
  errno = 0;
  EXPECT_EQ(RdmaCore().Open({.name = "no-such-card"}), nullptr);
  EXPECT_EQ(errno, ENODEV);
  EXPECT_EQ(RdmaCore().cards().NumaNode("no-such-card"), -1);
  EXPECT_FALSE(RdmaCore().cards().Has({.name = "no-such-card", .file = "uverbs9999", .instance = 1}));
}

}  // namespace
}  // namespace rnicd::provider
