#include "base/ndk/access_rights.h"

#include <gtest/gtest.h>

#include "base/status.h"

namespace rnicd {
namespace {

TEST(AccessRights, EveryAllowedCombinationGoesThereAndBack) {
  int allowed = 0;
  for (uint32_t flags = 0; flags < 16; ++flags) {
    const auto rights = AccessRightsFromMrFlags(flags);
    const bool incomplete = (flags & 0x4) != 0 && (flags & 0x1) == 0;
    ASSERT_EQ(rights.ok(), !incomplete) << flags;
    if (rights.ok()) {
      ++allowed;
      EXPECT_EQ(MrFlagsFromAccessRights(*rights), flags);
      EXPECT_EQ(*AccessRightsFromMrFlags(MrFlagsFromAccessRights(*rights)), *rights);
    }
  }
  EXPECT_EQ(allowed, 12);
}

TEST(AccessRights, NoFlagGrantsNothingRemote) { EXPECT_EQ(*AccessRightsFromMrFlags(0), AccessRights{}); }

TEST(AccessRights, RemoteWriteAloneIsIncomplete) {
  for (const uint32_t flags : {0x4u, 0x4u | 0x2u, 0x4u | 0x8u}) {
    const absl::Status refused = AccessRightsFromMrFlags(flags).status();
    EXPECT_TRUE(FailedWith(refused, ErrorReason::FLAGS_INCOMPLETE_REMOTE_WRITE)) << flags;
    EXPECT_EQ(ErrorInfoOf(refused).field, "flags");
  }
  EXPECT_TRUE(AccessRightsFromMrFlags(kMrFlagRemoteWrite)->remote_write);
}

TEST(AccessRights, AnyUnknownBitIsRefused) {
  for (int bit = 4; bit < 32; ++bit) {
    const uint32_t flags = uint32_t{1} << bit;
    EXPECT_TRUE(FailedWith(AccessRightsFromMrFlags(flags).status(), ErrorReason::FLAGS_UNKNOWN)) << bit;
    EXPECT_TRUE(FailedWith(AccessRightsFromMrFlags(flags | 0x4).status(), ErrorReason::FLAGS_UNKNOWN)) << bit;
  }
}

}  // namespace
}  // namespace rnicd
