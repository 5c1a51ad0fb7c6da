#include "daemon/app/observing/observers.h"

namespace rnicd::app {
namespace {

log::Field UserOf(const core::Caller& caller) {
  return caller.sid.empty() ? log::Field("uid", caller.uid) : log::Field("sid", caller.sid);
}

// The primary group on Linux; on Windows the number of groups, of which none comes first.
log::Field GroupOf(const core::Caller& caller) {
  return caller.group_sids == nullptr ? log::Field("gid", caller.gid) : log::Field("groups", caller.group_sids->size());
}

}  // namespace

void SessionLog::Observe(const core::Observation& observation) {
  if (const auto* const opened = observation.As<core::SessionOpened>(); opened != nullptr) {
    Log(*opened);
  } else if (const auto* const ended = observation.As<core::SessionEnded>(); ended != nullptr) {
    Log(*ended);
  }
}

void SessionLog::Log(const core::SessionOpened& opened) const {
  const core::Caller& caller = opened.caller;
  logger_.Info("session opened", {{"session", opened.id.value}, {"pid", caller.pid}, UserOf(caller), GroupOf(caller)});
}

void SessionLog::Log(const core::SessionEnded& ended) const {
  const core::Reclaimed& reclaimed = ended.reclaimed;
  logger_.Info("session ended", {{"session", ended.id.value},
                                 {"pid", ended.caller.pid},
                                 UserOf(ended.caller),
                                 {"cause", core::EndCauseName(ended.cause)},
                                 {"reclaimed_regions", reclaimed.regions},
                                 {"reclaimed_pinned_bytes", reclaimed.pinned_bytes},
                                 {"reclaimed_memory_bytes", reclaimed.memory_bytes}});
  if (reclaimed.failures > 0) {
    logger_.Error("objects could not be taken back", {{"session", ended.id.value}, {"objects", reclaimed.failures}});
  }
}

void HeapTrim::Observe(const core::Observation& observation) {
  if (observation.As<core::SessionEnded>() == nullptr || due_->exchange(true)) {
    return;
  }
  alarms_.Set(kDelay, [due = due_, trim = trim_] {
    due->store(false);
    trim();
  });
}

}  // namespace rnicd::app
