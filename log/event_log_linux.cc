#include "log/event_log.h"

namespace rnicd::log {

void AddEventLog(spdlog::logger& /*logger*/) {}

}  // namespace rnicd::log
