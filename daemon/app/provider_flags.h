#pragma once

#include "daemon/app/flag_reader.h"
#include "provider/soft/soft_provider.h"
#include "provider/verbs/verbs_options.h"

namespace rnicd::app {

// The flags of each kind of adapter. Those of a kind that is not chosen are read and checked all the same, so that a
// mistake in a file of flags does not wait for the day when the kind is changed.
provider::SoftOptions ReadSoftFlags(FlagReader& reader);
// Without on_event.
provider::VerbsOptions ReadVerbsFlags(FlagReader& reader);

}  // namespace rnicd::app
