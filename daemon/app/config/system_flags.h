#pragma once

#include "daemon/app/config/config.h"
#include "daemon/app/config/flag_reader.h"

namespace rnicd::app {

// Reads the flags that only this system has, into a `config` that is complete but for these.
void ReadSystemFlags(Config& config, FlagReader& reader);

}  // namespace rnicd::app
