#include "provider/verbs/card/kernel_cards.h"

#include <gtest/gtest.h>

namespace rnicd::provider {
namespace {

using std::string_view_literals::operator""sv;

TEST(KernelCards, NewsAreMessagesOfBothSubsystems) {
  EXPECT_TRUE(IsAboutCards("add@/devices/x\0ACTION=add\0SUBSYSTEM=infiniband_verbs\0SEQNUM=7\0"sv));
  EXPECT_TRUE(IsAboutCards("move@/devices/x\0SUBSYSTEM=infiniband\0"sv));
  EXPECT_FALSE(IsAboutCards("add@/devices/infiniband\0NAME=SUBSYSTEM=infiniband\0SUBSYSTEM=net\0"sv));
  EXPECT_FALSE(IsAboutCards(""sv));
}

}  // namespace
}  // namespace rnicd::provider
