#include "daemon/app/host/page_size.h"

#include "absl/strings/str_cat.h"
#include "base/units.h"

namespace rnicd::app {

std::optional<std::string> WarnOfKernelPages(uint64_t page_bytes) {
  if (page_bytes == kNdkPageBytes) {
    return std::nullopt;
  }
  return absl::StrCat("the kernel's pages have ", page_bytes,
                      " bytes: memory is charged in whole ones, and a card refuses ",
                      "registrations that take less than whole ones");
}

}  // namespace rnicd::app
