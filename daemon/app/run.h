#pragma once

#include <span>

#include "daemon/app/config/config.h"

namespace rnicd::app {

// The whole program, which can own these cards: reads the flags, serves until it is to stop, and returns the exit
// status. To be called once, by main.
int RunDaemon(int argc, char** argv, std::span<const ProviderKind> cards);

}  // namespace rnicd::app
