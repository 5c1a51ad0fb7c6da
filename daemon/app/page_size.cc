#include "daemon/app/page_size.h"

#include "absl/strings/str_cat.h"
#include "base/units.h"

namespace rnicd::app {

absl::Status RequireNdkPages(uint64_t kernel_page_bytes) {
  return kernel_page_bytes == kNdkPageBytes
             ? absl::OkStatus()
             : absl::FailedPreconditionError(absl::StrCat("the kernel's pages have ", kernel_page_bytes,
                                                          " bytes, and rnicd needs a kernel with pages of ",
                                                          kNdkPageBytes, " bytes"));
}

}  // namespace rnicd::app
