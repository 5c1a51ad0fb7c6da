#pragma once

#include "daemon/app/config/flag_reader.h"
#include "provider/networkdirect/card/nd_options.h"

namespace rnicd::app {

// The flags of cards by Network Direct.
provider::NetworkDirectOptions ReadNetworkDirectFlags(FlagReader& reader);

}  // namespace rnicd::app
