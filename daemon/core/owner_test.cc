#include "daemon/core/owner.h"

#include <gtest/gtest.h>

namespace rnicd::core {
namespace {

TEST(OwnerOf, IsThePodElseTheContainerElseTheUid) {
  Caller caller{.uid = 1000};
  EXPECT_EQ(OwnerOf(caller), "uid 1000");
  caller.container.id = "c0ffee";
  EXPECT_EQ(OwnerOf(caller), "container c0ffee");
  caller.container.pod_uid = "5b3f";
  EXPECT_EQ(OwnerOf(caller), "pod 5b3f");
}

}  // namespace
}  // namespace rnicd::core
