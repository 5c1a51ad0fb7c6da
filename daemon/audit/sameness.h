#pragma once

#include <string>

#include "daemon/audit/audit_line.h"

namespace rnicd::audit {

// Two refusals of one owner are repeats when these texts are equal: role, tenant, session, action, code, reason, note,
// and field without its indices. It excludes what a client can vary from call to call, because then no refusal would be
// a repeat: the objects, the figures of a limit, and the process. Operators and device plugins are trusted, so their
// objects count.
std::string SamenessOf(const AuditLine& line);

}  // namespace rnicd::audit
