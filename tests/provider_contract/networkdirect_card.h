#pragma once

#include <memory>

#include "tests/networkdirect_model/model_control.h"
#include "tests/provider_contract/tested_card.h"

namespace rnicd::provider {

// The Network Direct provider on the model of its tests, whose calls complete in this way.
std::unique_ptr<TestedCard> MakeNetworkDirectCard(ModelPending pending);

}  // namespace rnicd::provider
