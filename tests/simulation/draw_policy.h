#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "daemon/core/grant_table.h"
#include "daemon/core/policy.h"
#include "tests/simulation/dice.h"
#include "tests/simulation/manual.h"

namespace rnicd::simulation {

// Somebody of a few uids, sometimes in one of a few pods. `process` numbers the process.
core::Caller DrawCaller(Dice& dice, uint64_t process, const std::shared_ptr<ManualProcess>& handle);

// Limits near enough to be hit. `rates`: also how many calls a second.
core::TenantLimits DrawTenantLimits(Dice& dice, bool rates);

// A few rules, each with callers of its own, more or less, and for the rest one of them or nobody.
core::Policy DrawPolicy(Dice& dice, bool rates);

// What is known of the pods; not of every one.
std::vector<core::PodFacts> DrawPods(Dice& dice);

// One of a few names; `careless` draws one that is none.
core::GrantTerms DrawGrantTerms(Dice& dice, bool rates, bool careless);

}  // namespace rnicd::simulation
