#pragma once

namespace spdlog {
class logger;
}

namespace rnicd::log {

// Lets warnings and errors go to the event log of Windows as well, as source "rnicd" of the log Application. Does
// nothing on Linux.
void AddEventLog(spdlog::logger& logger);

}  // namespace rnicd::log
