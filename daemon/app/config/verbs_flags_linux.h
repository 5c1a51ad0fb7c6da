#pragma once

#include "daemon/app/config/flag_reader.h"
#include "provider/verbs/card/verbs_options.h"

namespace rnicd::app {

// The flags of cards by libibverbs.
provider::VerbsOptions ReadVerbsFlags(FlagReader& reader);

}  // namespace rnicd::app
