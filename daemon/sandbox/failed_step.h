#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/errno_status.h"

namespace rnicd::sandbox {

// "sandbox: cannot set no_new_privs: EPERM".
inline absl::Status FailedStep(std::string_view step, int error_number) {
  return absl::InternalError(absl::StrCat("sandbox: ", ErrnoDetail(step, error_number)));
}

}  // namespace rnicd::sandbox
