#include "daemon/core/queue/mapped_results.h"

#include <utility>

#include "base/status.h"
#include "ring/geometry.h"

namespace rnicd::core {

uint64_t MappedResults::FileBytes(uint32_t depth_max) { return ring::MakeQueueGeometry(depth_max).file_bytes(); }

absl::StatusOr<std::unique_ptr<MappedResults>> MappedResults::Create(Os& os, LingeringMemory& lingering,
                                                                     uint32_t depth_max, Charge charge) {
  RNICD_ASSIGN_OR_RETURN(std::unique_ptr<SharedFile> file,
                         SharedFile::Create(os, lingering, FileBytes(depth_max), std::move(charge)));
  RNICD_ASSIGN_OR_RETURN(ring::ClientPipe pipe, ring::ClientPipe::Create());
  return std::unique_ptr<MappedResults>(new MappedResults(std::move(file), std::move(pipe), depth_max));
}

MappedResults::MappedResults(std::unique_ptr<SharedFile> file, ring::ClientPipe pipe, uint32_t depth_max)
    : file_(std::move(file)), pipe_(std::move(pipe)), writer_(file_->bytes(), ring::MakeQueueGeometry(depth_max)) {}

absl::StatusOr<UniqueFd> MappedResults::Duplicate(SharedDescriptor which) {
  switch (which) {
    case SharedDescriptor::kMemory:
      return file_->Duplicate();
    case SharedDescriptor::kPipe:
      return pipe_.TakeReadEnd();
    case SharedDescriptor::kDoorbell:
      break;
  }
  return MakeError(ErrorReason::OBJECT_NOT_FOUND, "cq_id");
}

uint32_t MappedResults::unread() { return writer_.unread(); }

void MappedResults::Push(const Completion& completion) {
  if (writer_.Push(completion)) {
    pipe_.Announce();
  }
}

void MappedResults::Notify() {
  if (writer_.Notify()) {
    pipe_.Announce();
  }
}

void MappedResults::Fail(NtStatus status) {
  if (writer_.Fail(static_cast<uint32_t>(status))) {
    pipe_.Announce();
  }
}

}  // namespace rnicd::core
