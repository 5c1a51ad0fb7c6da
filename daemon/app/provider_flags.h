#pragma once

#include "daemon/app/flag_reader.h"
#include "provider/soft/soft_provider.h"
#include "provider/verbs/verbs_options.h"

namespace rnicd::app {

// The flags of each kind of adapter. Flags of a kind that is not selected are read and checked all the same, so that an
// error in a flag file shows before the kind is changed.
provider::SoftOptions ReadSoftFlags(FlagReader& reader);
provider::VerbsOptions ReadVerbsFlags(FlagReader& reader);

}  // namespace rnicd::app
