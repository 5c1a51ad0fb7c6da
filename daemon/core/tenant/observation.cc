#include "daemon/core/tenant/observation.h"

namespace rnicd::core {

std::string_view EndCauseName(EndCause cause) {
  switch (cause) {
    case EndCause::kClosed:
      return "closed";
    case EndCause::kProcessExited:
      return "process_exited";
    case EndCause::kConnectionLost:
      return "connection_lost";
    case EndCause::kEvicted:
      return "evicted";
    case EndCause::kDaemonStopping:
      return "daemon_stopping";
    case EndCause::kGrantRevoked:
      return "grant_revoked";
    case EndCause::kGrantExpired:
      return "grant_expired";
  }
  return "unknown";
}

}  // namespace rnicd::core
