#include "daemon/core/ring.h"

#include <fcntl.h>
#include <sys/eventfd.h>

#include <cerrno>

#include "base/errno_status.h"
#include "base/status.h"

namespace rnicd::core {

absl::StatusOr<std::shared_ptr<Ring>> Ring::Create(Os& os, LingeringMemory& lingering,
                                                   const ring::RingGeometry& geometry, std::weak_ptr<Session> session,
                                                   Charges charges) {
  RNICD_ASSIGN_OR_RETURN(std::unique_ptr<SharedFile> file,
                         SharedFile::Create(os, lingering, geometry.file_bytes(), std::move(charges.bytes)));
  RNICD_ASSIGN_OR_RETURN(ClientPipe pipe, ClientPipe::Create());
  UniqueFd doorbell(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!doorbell.valid()) {
    return MakeErrorWithDetail(ErrorReason::RINGS_UNAVAILABLE, ErrnoDetail("eventfd", errno));
  }
  return std::shared_ptr<Ring>(new Ring(std::move(file), std::move(doorbell), std::move(pipe), geometry,
                                        std::move(session), std::move(charges.ring)));
}

Ring::Ring(std::unique_ptr<SharedFile> file, UniqueFd doorbell, ClientPipe pipe, const ring::RingGeometry& geometry,
           std::weak_ptr<Session> session, Charge charge)
    : file_(std::move(file)),
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
  UniqueFd duplicate(fcntl(doorbell_.get(), F_DUPFD_CLOEXEC, 0));
  if (!duplicate.valid()) {
    return MakeErrorWithDetail(ErrorReason::RINGS_UNAVAILABLE, ErrnoDetail("fcntl(F_DUPFD_CLOEXEC)", errno));
  }
  return duplicate;
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
