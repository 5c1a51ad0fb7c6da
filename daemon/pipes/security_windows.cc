#include <windows.h>
// Behind windows.h, whose types it uses.
#include <sddl.h>

#include "absl/strings/str_cat.h"
#include "base/windows_status.h"
#include "daemon/pipes/security.h"

namespace rnicd::pipes {

// FA: all rights of a file. SY: SYSTEM. BA: administrators. AU: authenticated users. P: nothing is inherited.
std::string DescriptorText(Door door, const std::string& daemon_sid) {
  const std::string operators = absl::StrCat("(A;;FA;;;SY)(A;;FA;;;BA)(A;;FA;;;", daemon_sid, ")");
  return door == Door::kOperator ? absl::StrCat("D:P", operators)
                                 : absl::StrCat("D:P", operators, "(A;;0x", absl::Hex(kClientRights), ";;;AU)");
}

absl::StatusOr<SecurityDescriptor> SecurityDescriptor::Parse(const std::string& text) {
  PSECURITY_DESCRIPTOR descriptor = nullptr;
  if (ConvertStringSecurityDescriptorToSecurityDescriptorA(text.c_str(), SDDL_REVISION_1, &descriptor, nullptr) == 0) {
    return LastErrorStatus("ConvertStringSecurityDescriptorToSecurityDescriptor");
  }
  return SecurityDescriptor(descriptor);
}

void SecurityDescriptor::Free::operator()(void* memory) const { LocalFree(memory); }

}  // namespace rnicd::pipes
