#include "daemon/core/tenant/caller.h"

#include <gtest/gtest.h>

#include <memory>

#include "base/manual_clock_fake.h"
#include "daemon/core/tenant/tenant.h"

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

TEST(OwnerOf, IsTheGrantOfTheDoorBeforeAnythingElse) {
  const ManualClock clock;
  Caller caller{.uid = 1000};
  caller.container.pod_uid = "5b3f";
  caller.door = std::make_shared<Tenant>("grant/a", "", GrantId{7}, 1, TenantLimits{}, nullptr, clock);
  EXPECT_EQ(OwnerOf(caller), "door 7");
}

TEST(OwnerOf, IsTheSidOnWindows) {
  const Caller caller{.uid = kNoUser, .gid = kNoUser, .sid = "S-1-5-21-1-2-3-1001"};
  EXPECT_EQ(OwnerOf(caller), "sid S-1-5-21-1-2-3-1001");
}

}  // namespace
}  // namespace rnicd::core
