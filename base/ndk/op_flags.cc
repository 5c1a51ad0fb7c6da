#include "base/ndk/op_flags.h"

#include "base/status.h"

namespace rnicd {

absl::Status CheckOpFlags(uint32_t flags, uint32_t known) {
  if ((flags & ~known) != 0) {
    return MakeError(ErrorReason::FLAGS_UNKNOWN, "flags");
  }
  // Never `flags & kOpFlagRemoteWrite`: that is also true for local write alone.
  if ((flags & kOpFlagRemoteWriteBit) != 0 && (flags & kOpFlagLocalWrite) == 0) {
    return MakeError(ErrorReason::FLAGS_INCOMPLETE_REMOTE_WRITE, "flags");
  }
  return absl::OkStatus();
}

AccessRights AccessRightsFromOpFlags(uint32_t flags) {
  return AccessRights{.local_write = (flags & kOpFlagLocalWrite) != 0,
                      .remote_read = (flags & kOpFlagRemoteRead) != 0,
                      .remote_write = (flags & kOpFlagRemoteWrite) == kOpFlagRemoteWrite,
                      .read_sink = (flags & kOpFlagReadSink) != 0};
}

}  // namespace rnicd
