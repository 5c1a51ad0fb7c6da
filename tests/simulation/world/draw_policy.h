#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "daemon/core/tenant/grant_table.h"
#include "daemon/core/tenant/policy.h"
#include "tests/simulation/world/dice.h"
#include "tests/simulation/world/manual.h"

namespace rnicd::simulation {

// A caller with one of a few uids, sometimes in one of a few pods. `process` is the number of its process.
core::Caller DrawCaller(Dice& dice, uint64_t process, const std::shared_ptr<ManualProcess>& handle);

// Limits low enough to be hit. `rates`: also draws a call rate per second.
core::TenantLimits DrawTenantLimits(Dice& dice, bool rates);

// A few rules whose matchers may overlap, and for all other callers a default rule or none.
core::Policy DrawPolicy(Dice& dice, bool rates);

// Facts about some of the pods.
std::vector<core::PodFacts> DrawPods(Dice& dice);

// Terms with one of a few names; if `careless`, with an invalid name.
core::GrantTerms DrawGrantTerms(Dice& dice, bool rates, bool careless);

}  // namespace rnicd::simulation
