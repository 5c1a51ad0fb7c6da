#pragma once

#include "tests/simulation/model/scene.h"

namespace rnicd::simulation {

// The invariants that must hold after every step. Each function checks one; they are called in this order.

// Every accepted post completes exactly once, in posting order, with its own context, unless it is silent and succeeds.
void EveryPostCompletesOnce(Scene& scene);
// The memory of a mapped queue says how often it has notified, and whether it has overrun.
void MappedQueuesSayWhatHappened(Scene& scene);
// The peer of a connection that ended gets exactly one event.
void PeersAreToldOnce(Scene& scene);
// Every pending callback comes once, in the step in which its request ends.
void CallbacksComeOnce(Scene& scene);
// Every queued job has a cause, and no job is missing.
void JobsHaveACause(Scene& scene);
// Every count of every session, every tenant and the node equals the number of existing objects. Before that, under the
// name PinnedBytesEqualHeldPages: the bytes charged as pinned equal the file pages that registrations and mappings
// hold, each page once per session and once per tenant; the node's figure is the sum over tenants.
void CountsEqualHoldings(Scene& scene);
// The tenants are those that the policy and the grants assign to the callers so far, with the limits in force; names
// are unique.
void TenantsAreThoseOfThePolicy(Scene& scene);
// A grant is listed until it is revoked or swept.
void GrantsAreThoseThatAreNotOver(Scene& scene);
// Every decision made without a call is reported once, with the right names.
void EveryDecisionIsTold(Scene& scene);
// No object of the card, no mapping, no session, no ticket exists without an owner.
void NoObjectWithoutOwner(Scene& scene);
// A key exists exactly as long as its region or window.
void NoTokenOutlivesItsRegion(Scene& scene);
// Memory changes only by its owner or through a token that allows it.
void NoByteMovesWithoutRight(Scene& scene);
// Regions are in the state that results from their owner's calls.
void RegionsAreWhatTheirOwnersMade(Scene& scene);
// An ended session holds nothing and refuses every call.
void EndedSessionsHoldNothing(Scene& scene);

// Checks all of the above and prepares the witness and the model for the next step.
void CheckInvariants(Scene& scene);

// After everything is closed all counts are zero and the tenants are forgotten.
void NothingIsLeft(Scene& scene);

}  // namespace rnicd::simulation
