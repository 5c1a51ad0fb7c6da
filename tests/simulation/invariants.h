#pragma once

#include "tests/simulation/scene.h"

namespace rnicd::simulation {

// What must hold after every step. Each function is one sentence; all of them are called in this order.

// Every accepted post completes exactly once, in posting order, with its own context, unless it is silent and succeeds.
void EveryPostCompletesOnce(Scene& scene);
// The peer of a connection that ended is told so, once.
void PeersAreToldOnce(Scene& scene);
// Whoever waits for a callback gets it, once, in the step in which its request ends.
void CallbacksComeOnce(Scene& scene);
// Nothing is left for later that nobody asked for, and nothing is forgotten.
void JobsHaveACause(Scene& scene);
// The bytes charged as pinned are those of the pages of files that registrations and mappings hold, each page once for
// a session and once for a tenant, whose sum is the node's.
void PinnedBytesEqualHeldPages(Scene& scene);
// Every other count, of every session, every tenant and the node, is that of the things that exist.
void CountsEqualHoldings(Scene& scene);
// There are the tenants that the policy and the grants make of those who came, with the limits in force; one of a name.
void TenantsAreThoseOfThePolicy(Scene& scene);
// A grant is listed until it is revoked or swept away.
void GrantsAreThoseThatAreNotOver(Scene& scene);
// What is decided without a call is told, once, with the right names.
void EveryDecisionIsTold(Scene& scene);
// No object of the card, no mapping, no session, no ticket exists without an owner.
void NoObjectWithoutOwner(Scene& scene);
// A key exists as long as its region or window, and no longer.
void NoTokenOutlivesItsRegion(Scene& scene);
// No byte of anybody's memory changes but by its owner or through a token that allowed it.
void NoByteMovesWithoutRight(Scene& scene);
// Regions are in the state that their owner's calls brought them to.
void RegionsAreWhatTheirOwnersMade(Scene& scene);
// A session that is over holds nothing and answers nothing.
void EndedSessionsHoldNothing(Scene& scene);

// All of the above. Leaves the witness and the model ready for the next step.
void CheckInvariants(Scene& scene);

// When everything is closed everything is zero, and the tenants are forgotten.
void NothingIsLeft(Scene& scene);

}  // namespace rnicd::simulation
