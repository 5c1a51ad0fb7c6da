#include "client/libfabric/errors.h"

#include <cstdio>

#include "client/c/rnicd.h"
#include "client/libfabric/provider.h"

namespace rnicd::fi {

int Refused(fi_log_subsys subsystem, const char* what, int code) {
  const rnicd_error& error = *rnicd_last_error();
  RNICD_FI_WARN(subsystem, "%s: %s (%s%s%s)\n", what, error.message, rnicd_reason_name(error.reason),
                error.field[0] != '\0' ? ", " : "", error.field);
  return code;
}

const char* ReasonText(int reason, char* buffer, size_t bytes) {
  const char* name = rnicd_reason_name(static_cast<uint32_t>(reason));
  if (buffer == nullptr || bytes == 0) {
    return name;
  }
  std::snprintf(buffer, bytes, "%s", name);
  return buffer;
}

}  // namespace rnicd::fi
