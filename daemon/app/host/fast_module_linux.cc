#include "daemon/app/host/fast_module_linux.h"

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/units.h"

namespace rnicd::app {

void OpenFastModule(provider::VerbsOptions& verbs) {
  using provider::FastEngine;
  if (verbs.fast_engine != FastEngine::kAuto && verbs.fast_engine != FastEngine::kKernel) {
    return;
  }
  if (verbs.kernel_page_bytes != kNdkPageBytes) {
    verbs.no_fast_module = absl::StrCat("the kernel's pages have ", verbs.kernel_page_bytes,
                                        " bytes, and a fast registration lists pages of ", kNdkPageBytes);
    return;
  }
  verbs.fast_module = provider::OpenFastModule();
  if (verbs.fast_module != nullptr) {
    return;
  }
  verbs.no_fast_module = errno == ENOENT   ? "the kernel module rnicd_fr is not loaded"
                         : errno == EPROTO ? "the kernel module rnicd_fr is of another version"
                                           : absl::StrCat("cannot open /dev/rnicd_fr: ", std::strerror(errno));
}

}  // namespace rnicd::app
