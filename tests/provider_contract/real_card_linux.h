#pragma once

#include <memory>
#include <string>

#include "tests/provider_contract/tested_card.h"

namespace rnicd::provider {

// A card of this machine with connections by address, such as the guest of tests/vm has. Its driver has no way to
// settle: what it has been asked is over when a message and a request for a connection that came later are.
std::unique_ptr<TestedCard> MakeRealCard(const std::string& name);

}  // namespace rnicd::provider
