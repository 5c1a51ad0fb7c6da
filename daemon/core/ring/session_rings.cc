#include "daemon/core/ring/session_rings.h"

#include <utility>

#include "base/mutex.h"
#include "base/status.h"
#include "daemon/core/ring/ring_host.h"

namespace rnicd::core {
namespace {

constexpr uint32_t kDefaultEntries = 128;
// Bytes of a ring's file with the default entries and payload.
constexpr uint32_t kDefaultFileBytes = 64U << 10;

// The payload that gives the file its default size, but at least kPayloadBytesMin.
uint32_t DefaultPayload(uint32_t entries) {
  const uint64_t others = sizeof(ring::RingHeader) + uint64_t{entries} * 2 * ring::kEntryBytes;
  return others + ring::kPayloadBytesMin > kDefaultFileBytes ? ring::kPayloadBytesMin
                                                             : static_cast<uint32_t>(kDefaultFileBytes - others);
}

}  // namespace

absl::StatusOr<OpenedRing> SessionRings::Open(uint32_t entries, uint32_t payload_bytes) {
  if (node_.rings == nullptr) {
    return MakeError(ErrorReason::RINGS_UNAVAILABLE);
  }
  const uint32_t wanted = entries == 0 ? kDefaultEntries : entries;
  RNICD_ASSIGN_OR_RETURN(const ring::RingGeometry geometry,
                         ring::MakeRingGeometry(wanted, payload_bytes == 0 ? DefaultPayload(wanted) : payload_bytes));
  // Refund memory that has ended meanwhile, to make room.
  node_.lingering.Sweep();
  RNICD_ASSIGN_OR_RETURN(
      auto charges, Charge::TakeAll(ledger_, {{Resource::kRings, 1},
                                              {Resource::kHeapBytes, OccupiedBytes(node_.os, geometry.file_bytes())}}));
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<Ring> ring,
                         Ring::Create(node_.os, node_.lingering, geometry, lease_.weak_from_this(),
                                      {.ring = std::move(charges[0]), .bytes = std::move(charges[1])}));
  const RingId id = table_.Insert(ring);
  const auto issue = [&](SharedDescriptor which) {
    return node_.tickets.Issue({.session = lease_.weak_from_this(),
                                .object = RingDescriptor{.ring = id, .which = which},
                                .direction = FdDirection::kToClient,
                                .process = lease_.owner().process});
  };
  const OpenedRing opened{.ring = id,
                          .file_bytes = geometry.file_bytes(),
                          .memory = issue(SharedDescriptor::kMemory),
                          .doorbell = issue(SharedDescriptor::kDoorbell),
                          .pipe = issue(SharedDescriptor::kPipe)};
  ring->Publish(id, {OwnedTicket(node_.tickets, opened.memory), OwnedTicket(node_.tickets, opened.doorbell),
                     OwnedTicket(node_.tickets, opened.pipe)});
  node_.rings->Attach(std::move(ring));
  return opened;
}

MaybePending<> SessionRings::Close(RingId id, const Done<>& done) {
  const std::shared_ptr<Ring> ring = table_.Remove(id);
  if (ring == nullptr) {
    return MakeError(ErrorReason::OBJECT_NOT_FOUND, "ring_id");
  }
  node_.rings->Detach(ring, [ring, done] {
    ring->End(ErrorReason::OBJECT_CLOSING);
    done(absl::OkStatus());
  });
  return MaybePending<>::Pending();
}

absl::StatusOr<UniqueFd> SessionRings::Duplicate(RingId id, SharedDescriptor which) {
  RNICD_ASSIGN_OR_RETURN(const std::shared_ptr<Ring> ring, FindIn(table_, id, "ring_id"));
  return ring->Duplicate(which);
}

void SessionRings::CloseAll() {
  const Table::Entries rings = table_.TakeAll();
  Mutex mutex;
  ConditionVariable changed;
  size_t left = rings.size();
  for (const auto& [id, ring] : rings) {
    ring->End(ErrorReason::SESSION_ENDING);
    node_.rings->Detach(ring, [&mutex, &changed, &left] {
      MutexLock lock(mutex);
      --left;
      changed.NotifyAll();
    });
  }
  MutexLock lock(mutex);
  while (left != 0) {
    changed.Wait(mutex);
  }
}

}  // namespace rnicd::core
