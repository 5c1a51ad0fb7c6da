#include "base/ndk/access_rights.h"

#include "base/status.h"

namespace rnicd {

absl::StatusOr<AccessRights> AccessRightsFromMrFlags(uint32_t flags) {
  constexpr uint32_t kKnown = kMrFlagRemoteWrite | kMrFlagRemoteRead | kMrFlagReadSink;
  if ((flags & ~kKnown) != 0) {
    return MakeError(ErrorReason::FLAGS_UNKNOWN, "flags");
  }
  if ((flags & kMrFlagRemoteWriteBit) != 0 && (flags & kMrFlagLocalWrite) == 0) {
    return MakeError(ErrorReason::FLAGS_INCOMPLETE_REMOTE_WRITE, "flags");
  }
  return AccessRights{.local_write = (flags & kMrFlagLocalWrite) != 0,
                      .remote_read = (flags & kMrFlagRemoteRead) != 0,
                      .remote_write = (flags & kMrFlagRemoteWriteBit) != 0,
                      .read_sink = (flags & kMrFlagReadSink) != 0};
}

uint32_t MrFlagsFromAccessRights(const AccessRights& rights) {
  return (rights.local_write ? kMrFlagLocalWrite : 0) | (rights.remote_read ? kMrFlagRemoteRead : 0) |
         (rights.remote_write ? kMrFlagRemoteWrite : 0) | (rights.read_sink ? kMrFlagReadSink : 0);
}

}  // namespace rnicd
