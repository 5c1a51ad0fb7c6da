#pragma once

#include <optional>
#include <string>

#include "provider/verbs/card/verbs_context.h"

namespace rnicd::provider {

// Tries fast registrations by the kernel on the card: a token is refused before its registration, reaches scattered
// pages under any base address and no byte more, and nothing after its invalidation, by this side or by the peer.
// Takes some ten milliseconds. Returns what is wrong; nullopt if nothing is.
std::optional<std::string> ProbeKernel(VerbsContext& context);

}  // namespace rnicd::provider
