#include "daemon/app/session_log.h"

namespace rnicd::app {

void SessionLog::Observe(const core::Observation& observation) {
  if (const auto* const opened = observation.As<core::SessionOpened>(); opened != nullptr) {
    Log(*opened);
  } else if (const auto* const ended = observation.As<core::SessionEnded>(); ended != nullptr) {
    Log(*ended);
  }
}

void SessionLog::Log(const core::SessionOpened& opened) const {
  const core::Caller& caller = opened.caller;
  logger_.Info("session opened",
               {{"session", opened.id.value}, {"pid", caller.pid}, {"uid", caller.uid}, {"gid", caller.gid}});
}

void SessionLog::Log(const core::SessionEnded& ended) const {
  const core::Reclaimed& reclaimed = ended.reclaimed;
  logger_.Info("session ended", {{"session", ended.id.value},
                                 {"pid", ended.caller.pid},
                                 {"uid", ended.caller.uid},
                                 {"cause", core::EndCauseName(ended.cause)},
                                 {"reclaimed_regions", reclaimed.regions},
                                 {"reclaimed_pinned_bytes", reclaimed.pinned_bytes},
                                 {"reclaimed_memory_bytes", reclaimed.memory_bytes}});
  if (reclaimed.failures > 0) {
    logger_.Error("objects could not be taken back", {{"session", ended.id.value}, {"objects", reclaimed.failures}});
  }
}

}  // namespace rnicd::app
