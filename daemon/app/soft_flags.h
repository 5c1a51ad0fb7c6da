#pragma once

#include "daemon/app/flag_reader.h"
#include "provider/soft/soft_provider.h"

namespace rnicd::app {

// The flags of the card in software. Flags of a kind of card that is not selected are read and checked all the same, so
// that an error in a flag file shows before the kind is changed.
provider::SoftOptions ReadSoftFlags(FlagReader& reader);

}  // namespace rnicd::app
