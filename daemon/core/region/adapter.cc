#include "daemon/core/region/adapter.h"

#include "base/status.h"

namespace rnicd::core {

absl::Status CheckNdkVersion(NdkVersion wanted) {
  if (wanted.major != kNdkVersion.major || wanted.minor > kNdkVersion.minor) {
    return MakeError(ErrorReason::NDK_VERSION_UNSUPPORTED, "version");
  }
  return absl::OkStatus();
}

}  // namespace rnicd::core
