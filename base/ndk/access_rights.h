#pragma once

#include <cstdint>

#include "absl/status/statusor.h"

namespace rnicd {

// NDK_MR_FLAG_ bits of RegisterMr. Source: ndkpi.h.
inline constexpr uint32_t kMrFlagLocalWrite = 0x1;
inline constexpr uint32_t kMrFlagRemoteRead = 0x2;
inline constexpr uint32_t kMrFlagRemoteWriteBit = 0x4;
inline constexpr uint32_t kMrFlagRemoteWrite = kMrFlagRemoteWriteBit | kMrFlagLocalWrite;
inline constexpr uint32_t kMrFlagReadSink = 0x8;

// Resolved access rights of a registration. NDK numbers the same rights differently on RegisterMr and on work requests,
// so raw masks are converted at the API boundary. Local read is always granted.
struct AccessRights {
  bool local_write = false;
  bool remote_read = false;
  bool remote_write = false;
  bool read_sink = false;
  friend bool operator==(const AccessRights&, const AccessRights&) = default;
};

// From NDK_MR_FLAG_ bits. Errors: FLAGS_UNKNOWN, FLAGS_INCOMPLETE_REMOTE_WRITE.
absl::StatusOr<AccessRights> AccessRightsFromMrFlags(uint32_t flags);
uint32_t MrFlagsFromAccessRights(const AccessRights& rights);

}  // namespace rnicd
