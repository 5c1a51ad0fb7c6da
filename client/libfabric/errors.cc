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

const char* GiveText(const char* text, char* buffer, size_t bytes) {
  if (buffer == nullptr || bytes == 0) {
    return text;
  }
  std::snprintf(buffer, bytes, "%s", text);
  return buffer;
}

}  // namespace rnicd::fi
