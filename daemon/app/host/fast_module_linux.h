#pragma once

#include "provider/verbs/card/verbs_options.h"

namespace rnicd::app {

// Opens the kernel's module for fast registrations if the options may use it, and the kernel's pages are those of NDK,
// of which the module makes lists. Needs privileges that the sandbox takes away. What is not there is not an error:
// the provider judges that.
void OpenFastModule(provider::VerbsOptions& verbs);

}  // namespace rnicd::app
