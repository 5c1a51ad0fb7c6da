#include "daemon/core/ring/ring.h"

#include "base/status.h"
#include "ring/doorbell.h"

namespace rnicd::core {

absl::StatusOr<std::shared_ptr<Ring>> Ring::Create(Os& os, LingeringMemory& lingering,
                                                   const ring::RingGeometry& geometry, std::weak_ptr<Lease> session,
                                                   Charges charges) {
  RNICD_ASSIGN_OR_RETURN(std::unique_ptr<SharedFile> file,
                         SharedFile::Create(os, lingering, geometry.file_bytes(), std::move(charges.bytes)));
  RNICD_ASSIGN_OR_RETURN(ring::ClientPipe pipe, ring::ClientPipe::Create());
  RNICD_ASSIGN_OR_RETURN(UniqueFd doorbell, ring::MakeDoorbell());
  return std::shared_ptr<Ring>(new Ring(os, std::move(file), std::move(doorbell), std::move(pipe), geometry,
                                        std::move(session), std::move(charges.ring)));
}

Ring::Ring(Os& os, std::unique_ptr<SharedFile> file, UniqueFd doorbell, ring::ClientPipe pipe,
           const ring::RingGeometry& geometry, std::weak_ptr<Lease> session, Charge charge)
    : os_(os),
      file_(std::move(file)),
      doorbell_(std::move(doorbell)),
      pipe_(std::move(pipe)),
      end_(file_->bytes(), geometry),
      session_(std::move(session)),
      charge_(std::move(charge)) {}

void Ring::Publish(RingId id, std::array<OwnedTicket, 3> tickets) {
  id_ = id;
  tickets_ = std::move(tickets);
}

absl::StatusOr<UniqueFd> Ring::Duplicate(SharedDescriptor which) {
  switch (which) {
    case SharedDescriptor::kMemory:
      return file_->Duplicate();
    case SharedDescriptor::kPipe:
      return pipe_.TakeReadEnd();
    case SharedDescriptor::kDoorbell:
      break;
  }
  absl::StatusOr<UniqueFd> duplicate = os_.Duplicate(doorbell_.get());
  return duplicate.ok() ? std::move(duplicate) : RingsUnavailable(duplicate.status());
}

void Ring::Complete(const ring::Outcome& outcome) {
  if (end_.Complete(outcome)) {
    pipe_.Announce();
  }
}

void Ring::End(ErrorReason reason) {
  if (end_.End(static_cast<uint32_t>(reason))) {
    pipe_.Announce();
  }
}

}  // namespace rnicd::core
