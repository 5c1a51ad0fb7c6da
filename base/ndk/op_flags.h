#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "base/ndk/access_rights.h"

namespace rnicd {

// NDK_OP_FLAG_ bits of work requests. Source: ndkpi.h; OpFlag in work_request.proto documents each flag.
inline constexpr uint32_t kOpFlagSilentSuccess = 0x001;
inline constexpr uint32_t kOpFlagReadFence = 0x002;
inline constexpr uint32_t kOpFlagSolicit = 0x004;
inline constexpr uint32_t kOpFlagRemoteRead = 0x008;
inline constexpr uint32_t kOpFlagLocalWrite = 0x010;
inline constexpr uint32_t kOpFlagRemoteWriteBit = 0x020;
inline constexpr uint32_t kOpFlagRemoteWrite = kOpFlagRemoteWriteBit | kOpFlagLocalWrite;
inline constexpr uint32_t kOpFlagInline = 0x040;
inline constexpr uint32_t kOpFlagReadSink = 0x080;
inline constexpr uint32_t kOpFlagReadLocalInvalidate = 0x100;
inline constexpr uint32_t kOpFlagDefer = 0x200;

// Flags that every initiator request accepts.
inline constexpr uint32_t kOpFlagsOfInitiator = kOpFlagSilentSuccess | kOpFlagReadFence | kOpFlagDefer;

// Errors: FLAGS_UNKNOWN for a bit that is not in `known`; FLAGS_INCOMPLETE_REMOTE_WRITE for half of remote write.
absl::Status CheckOpFlags(uint32_t flags, uint32_t known);

// The rights that checked flags request.
AccessRights AccessRightsFromOpFlags(uint32_t flags);

}  // namespace rnicd
