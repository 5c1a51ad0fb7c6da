#pragma once

#include <string>

#include "daemon/audit/audit_line.h"

namespace rnicd::audit {

// Two refusals of one owner say the same when these texts are equal: role, tenant, session, action, code, reason, note,
// and field without its indices.
// Left out is what a client can change from call to call, or its refusals would never be the same: the objects, the
// figures of a limit, and the process. Operators and device plugins are trusted not to, so their objects count.
std::string SamenessOf(const AuditLine& line);

}  // namespace rnicd::audit
