#include "daemon/core/tenant/caller.h"

#include "absl/strings/str_cat.h"
#include "daemon/core/tenant/tenant.h"

namespace rnicd::core {

std::string OwnerOf(const Caller& caller) {
  if (caller.door != nullptr) {
    return absl::StrCat("door ", caller.door->grant().value);
  }
  if (!caller.container.pod_uid.empty()) {
    return absl::StrCat("pod ", caller.container.pod_uid);
  }
  if (!caller.container.id.empty()) {
    return absl::StrCat("container ", caller.container.id);
  }
  return caller.sid.empty() ? absl::StrCat("uid ", caller.uid) : absl::StrCat("sid ", caller.sid);
}

}  // namespace rnicd::core
