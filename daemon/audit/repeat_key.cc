#include "daemon/audit/repeat_key.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace rnicd::audit {

std::string RepeatKeyOf(const AuditLine& line) {
  const core::Role role = line.caller.has_value() ? line.caller->role : core::Role::kWorkload;
  std::string field = line.error.field;
  std::erase_if(field, [](char character) { return absl::ascii_isdigit(static_cast<unsigned char>(character)); });
  std::string text = absl::StrCat(static_cast<int>(role), "\n", line.session_id, "\n", static_cast<int>(line.code),
                                  "\n", static_cast<int>(line.error.reason), "\n", line.what, "\n", line.tenant, "\n",
                                  field, "\n", line.note);
  if (role != core::Role::kWorkload) {
    absl::StrAppend(&text, "\n", line.object);
  }
  return text;
}

}  // namespace rnicd::audit
