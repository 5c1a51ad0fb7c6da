#pragma once

#include <functional>

#include "log/line_writer.h"

namespace rnicd::log {

// Writes lines to stderr and, on Windows with `event_log`, warnings and errors to the event log, as source "rnicd" of
// the log Application. The function blocks until the line has been taken, and returns false if it is lost. A line that
// was cut is ended before the next one. For one thread.
std::function<bool(const Line&)> LineSink(bool event_log);

}  // namespace rnicd::log
