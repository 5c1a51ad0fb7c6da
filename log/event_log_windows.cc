#include <spdlog/sinks/win_eventlog_sink.h>
#include <spdlog/spdlog.h>

#include <memory>

#include "log/event_log.h"

namespace rnicd::log {

void AddEventLog(spdlog::logger& logger) {
  auto sink = std::make_shared<spdlog::sinks::win_eventlog_sink_mt>("rnicd");
  sink->set_level(spdlog::level::warn);
  logger.sinks().push_back(std::move(sink));
}

}  // namespace rnicd::log
