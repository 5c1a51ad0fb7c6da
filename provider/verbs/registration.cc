#include "provider/verbs/registration.h"

#include <algorithm>
#include <cerrno>
#include <thread>
#include <utility>

#include "base/status.h"
#include "provider/verbs/memory_composer.h"
#include "provider/verbs/verbs_status.h"

namespace rnicd::provider {

int AccessFlags(const AccessRights& rights) {
  int flags = 0;
  if (rights.remote_read) {
    flags |= IBV_ACCESS_REMOTE_READ;
  }
  if (rights.remote_write) {
    flags |= IBV_ACCESS_REMOTE_WRITE;
  }
  if (rights.local_write || rights.remote_write) {
    flags |= IBV_ACCESS_LOCAL_WRITE;
  }
  return flags;
}

absl::StatusOr<std::unique_ptr<Registration>> Registration::Make(std::shared_ptr<VerbsDomain> domain,
                                                                 VirtualAddress base,
                                                                 std::span<const std::span<std::byte>> runs,
                                                                 int access) {
  VerbsDevice& device = domain->device();
  if (device.removed()) {
    return MakeError(ErrorReason::DEVICE_REMOVED);
  }
  RNICD_RETURN_IF_ERROR(device.AddRegion());
  const std::vector<std::span<std::byte>> joined = JoinRuns(runs);
  ComposedView view;
  std::span<std::byte> memory = joined.front();
  if (joined.size() > 1) {
    absl::StatusOr<ComposedView> composed = Compose(joined);
    if (!composed.ok()) {
      device.RemoveRegion();
      return composed.status();
    }
    view = *std::move(composed);
    memory = view.bytes();
  }
  ibv_mr* const mr = domain->api().RegMr(domain->pd(), memory.data(), memory.size(), base.value, access);
  if (mr == nullptr) {
    const int error = errno;
    device.RemoveRegion();
    return RegistrationStatus(error, memory.size(), ReadPinBudget());
  }
  return std::unique_ptr<Registration>(new Registration(std::move(domain), mr, joined.size() > 1));
}

absl::StatusOr<std::unique_ptr<Registration>> Registration::MakeOfDmabuf(std::shared_ptr<VerbsDomain> domain,
                                                                         const DeviceDmabufRegistration& request) {
  VerbsDevice& device = domain->device();
  if (device.removed()) {
    return MakeError(ErrorReason::DEVICE_REMOVED);
  }
  RNICD_RETURN_IF_ERROR(device.AddRegion());
  ibv_mr* const mr = domain->api().RegDmabufMr(domain->pd(), request.offset, request.length, request.base.value,
                                               request.file, AccessFlags(request.rights));
  if (mr == nullptr) {
    const int error = errno;
    device.RemoveRegion();
    return device.removed() ? MakeError(ErrorReason::DEVICE_REMOVED) : DmabufStatus(error);
  }
  return std::unique_ptr<Registration>(new Registration(std::move(domain), mr, /*composed=*/false));
}

Registration::~Registration() {
  if (!End().ok()) {
    domain_->Orphan(mr_);
  }
}

absl::Status Registration::End() {
  if (!live_) {
    return absl::OkStatus();
  }
  const int error = domain_->api().DeregMr(mr_);
  if (error != 0 && !domain_->device().IsRemoved(error)) {
    return VerbStatus(error, "ibv_dereg_mr");
  }
  live_ = false;
  domain_->device().RemoveRegion();
  return absl::OkStatus();
}

std::vector<std::span<std::byte>> SliceRuns(std::span<const std::span<std::byte>> runs, uint64_t offset,
                                            uint64_t length) {
  std::vector<std::span<std::byte>> slice;
  for (const std::span<std::byte> run : runs) {
    if (length == 0) {
      break;
    }
    if (offset >= run.size()) {
      offset -= run.size();
      continue;
    }
    const uint64_t count = std::min<uint64_t>(run.size() - offset, length);
    slice.push_back(run.subspan(offset, count));
    length -= count;
    offset = 0;
  }
  return slice;
}

}  // namespace rnicd::provider
