#include "daemon/core/owner.h"

#include "absl/strings/str_cat.h"

namespace rnicd::core {

std::string OwnerOf(const Caller& caller) {
  if (!caller.container.pod_uid.empty()) {
    return absl::StrCat("pod ", caller.container.pod_uid);
  }
  return caller.container.id.empty() ? absl::StrCat("uid ", caller.uid)
                                     : absl::StrCat("container ", caller.container.id);
}

}  // namespace rnicd::core
