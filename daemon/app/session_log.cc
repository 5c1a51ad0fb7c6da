#include "daemon/app/session_log.h"

namespace rnicd::app {

void SessionLog::OnSessionOpened(SessionId id, const core::Caller& caller) {
  logger_.Info("session opened",
               {{"session", id.value}, {"pid", caller.pid}, {"uid", caller.uid}, {"gid", caller.gid}});
}

void SessionLog::OnSessionEnded(SessionId id, const core::Caller& caller, core::EndCause cause,
                                const core::Reclaimed& reclaimed) {
  logger_.Info("session ended", {{"session", id.value},
                                 {"pid", caller.pid},
                                 {"uid", caller.uid},
                                 {"cause", core::EndCauseName(cause)},
                                 {"reclaimed_regions", reclaimed.regions},
                                 {"reclaimed_pinned_bytes", reclaimed.pinned_bytes},
                                 {"reclaimed_memory_bytes", reclaimed.memory_bytes}});
  if (reclaimed.failures > 0) {
    logger_.Error("objects could not be taken back", {{"session", id.value}, {"objects", reclaimed.failures}});
  }
}

}  // namespace rnicd::app
