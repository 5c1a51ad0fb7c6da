#pragma once

#include <string>

#include "absl/status/status.h"
#include "provider/verbs/card/verbs_context.h"

namespace rnicd::provider {

// Tries the card of this opening, and sets its engines. Errors: DEVICE_NOT_CAPABLE when the options require an engine
// that the card does not have.
absl::Status ChooseEngines(VerbsContext& context);
// "kernel", "window" or "registration".
std::string FastEngineName(const VerbsNode& node, const VerbsDevice& device);

}  // namespace rnicd::provider
