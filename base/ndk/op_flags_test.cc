#include "base/ndk/op_flags.h"

#include <gtest/gtest.h>

#include "base/status.h"

namespace rnicd {
namespace {

constexpr uint32_t kAll = 0x3ff;

TEST(OpFlags, LocalWriteIsNotTakenForRemoteWrite) {
  EXPECT_EQ(AccessRightsFromOpFlags(kOpFlagLocalWrite), (AccessRights{.local_write = true}));
}

TEST(OpFlags, RemoteWriteBringsLocalWrite) {
  EXPECT_EQ(AccessRightsFromOpFlags(kOpFlagRemoteWrite), (AccessRights{.local_write = true, .remote_write = true}));
}

TEST(OpFlags, RightsAreReadOneByOne) {
  EXPECT_EQ(AccessRightsFromOpFlags(kOpFlagRemoteRead | kOpFlagReadSink),
            (AccessRights{.remote_read = true, .read_sink = true}));
  EXPECT_EQ(AccessRightsFromOpFlags(kOpFlagSilentSuccess | kOpFlagDefer), AccessRights{});
}

TEST(OpFlags, HalfOfRemoteWriteIsRefused) {
  EXPECT_TRUE(FailedWith(CheckOpFlags(kOpFlagRemoteWriteBit, kAll), ErrorReason::FLAGS_INCOMPLETE_REMOTE_WRITE));
  EXPECT_TRUE(CheckOpFlags(kOpFlagRemoteWrite, kAll).ok());
}

TEST(OpFlags, ABitTheOperationDoesNotTakeIsRefused) {
  EXPECT_TRUE(FailedWith(CheckOpFlags(kOpFlagInline, kOpFlagsOfInitiator), ErrorReason::FLAGS_UNKNOWN));
  EXPECT_TRUE(FailedWith(CheckOpFlags(0x400, kAll), ErrorReason::FLAGS_UNKNOWN));
  EXPECT_TRUE(CheckOpFlags(kOpFlagsOfInitiator, kOpFlagsOfInitiator).ok());
}

}  // namespace
}  // namespace rnicd
