#pragma once

#include "daemon/app/config/config.h"
#include "daemon/app/host/process_host.h"
#include "log/logger.h"

namespace rnicd::app {

// Raises the process's limits as far as the system allows. Logs a warning where that is too low for all possible
// connections, and where memory may not be of any size.
void RaiseLimits(const Config& config, ProcessHost& host, const log::Logger& logger);

}  // namespace rnicd::app
