// Rings: opening and closing them. What goes through them is in by_ring.cc.

#include <string>

#include "tests/simulation/steps/steps.h"

namespace rnicd::simulation {
namespace {

using core::Resource;
using core::SharedDescriptor;

// Small, so that indices and payload often begin again.
constexpr uint32_t kEntries = 8;
constexpr uint32_t kPayloadBytes = 4096;

void OpenRing(Scene& scene, Client& client) {
  Call call(scene, client, "OpenRing");
  if (!call.admitted()) {
    return;
  }
  const uint64_t file_bytes = ring::MakeRingGeometry(kEntries, kPayloadBytes)->file_bytes();
  Refusals why;
  scene.model.CheckQuota(client, Resource::kRings, 1, why);
  scene.model.CheckHeap(client, {{Resource::kRings, 1}}, file_bytes, why);
  if (why.none()) {
    SharedFileMayFail(scene, why);
  }
  const auto opened = call.session().rings().Open(kEntries, kPayloadBytes);
  if (!call.Accepted(opened.status(), why)) {
    return;
  }
  const UniqueFd file = RedeemShared(scene, client, {opened->memory, opened->doorbell, opened->pipe},
                                     call.session().rings().Duplicate(opened->ring, SharedDescriptor::kMemory));
  client.ring = std::make_unique<RingUser>(scene.world.rings.newest(), file, opened->file_bytes);
}

void CloseRing(Scene& scene, Client& client) {
  Call call(scene, client, "CloseRing");
  if (!call.admitted()) {
    return;
  }
  Refusals why;
  const uint64_t callback = scene.mailbox.Reserve();
  const RingId id = client.ring->ring()->id();
  scene.mailbox.Expect(callback, why);
  const auto closed = call.session().rings().Close(id, scene.mailbox.DoneFor(callback));
  if (call.Accepted(closed, why, true)) {
    client.ring.reset();
  }
}

}  // namespace

void SharedFileMayFail(Scene& scene, Refusals& why) {
  Refusals cause;
  Faults& faults = scene.model.faults;
  const bool fails = faults.Strikes(Fault::kCreateMemoryFile, cause) || faults.Strikes(Fault::kAddSeals, cause) ||
                     faults.Strikes(Fault::kMap, cause) || faults.Strikes(Fault::kPopulate, cause);
  why.If(fails, ErrorReason::RINGS_UNAVAILABLE);
}

UniqueFd RedeemShared(Scene& scene, const Client& client, std::initializer_list<core::FdTicket> tickets,
                      absl::StatusOr<UniqueFd> file) {
  for (const core::FdTicket& ticket : tickets) {
    const absl::Status redeemed = scene.world.tickets.Redeem(ticket, client.caller.process);
    if (!redeemed.ok()) {
      scene.findings.Report("CallsAreJudgedByTheRules", "a new ticket was refused: " + TextOf(redeemed));
    }
  }
  return *std::move(file);
}

std::vector<ClientStep> RingSteps() {
  return {
      // A second one now and then, which the limit refuses.
      {OpenRing,
       [](const Client& client) -> uint64_t {
         return client.uses_rings && !client.ending ? (client.ring == nullptr ? 60 : 1) : 0;
       }},
      {CloseRing,
       [](const Client& client) -> uint64_t {
         return client.ring != nullptr && client.ring->outstanding() == 0 ? 1 : 0;
       }},
  };
}

}  // namespace rnicd::simulation
