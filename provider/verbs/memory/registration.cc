#include "provider/verbs/memory/registration.h"

#include <algorithm>
#include <cerrno>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/units.h"
#include "provider/engine/byte_runs.h"
#include "provider/verbs/card/verbs_status.h"
#include "provider/verbs/memory/memory_composer.h"

namespace rnicd::provider {
namespace {

absl::Status RefuseForPages(uint64_t page_bytes, const char* what) {
  return MakeErrorWithDetail(ErrorReason::DEVICE_NOT_CAPABLE,
                             absl::StrCat("the kernel's pages have ", page_bytes, " bytes, and ", what));
}

// The kernel places memory for a card page by page: an address keeps its place in its page. Core has checked that for
// pages of NDK's size.
absl::Status CheckPlace(uint64_t page_bytes, uint64_t base, uint64_t memory) {
  return base % page_bytes == memory % page_bytes
             ? absl::OkStatus()
             : RefuseForPages(page_bytes, "this address is not at the place in its page that the memory is at");
}

// Pieces that are joined must be such pages, apart from the begin and the end.
absl::Status CheckSeams(uint64_t page_bytes, std::span<const std::span<std::byte>> runs) {
  for (size_t index = 0; index < runs.size(); ++index) {
    const auto begin = reinterpret_cast<uint64_t>(runs[index].data());
    if ((index > 0 && begin % page_bytes != 0) ||
        (index + 1 < runs.size() && (begin + runs[index].size()) % page_bytes != 0)) {
      return RefuseForPages(page_bytes, "this range is joined of pieces that are not whole ones");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckPages(uint64_t page_bytes, uint64_t base, std::span<const std::span<std::byte>> runs) {
  if (page_bytes == kNdkPageBytes) {
    return absl::OkStatus();
  }
  RNICD_RETURN_IF_ERROR(CheckSeams(page_bytes, runs));
  return CheckPlace(page_bytes, base, reinterpret_cast<uint64_t>(runs.front().data()));
}

// Registers the runs end to end; with `at`, while they are mapped there.
absl::StatusOr<ibv_mr*> RegisterRuns(VerbsDomain& domain, VirtualAddress base,
                                     std::span<const std::span<std::byte>> runs, int access, const std::byte* at) {
  ComposedView view;
  std::span<std::byte> memory = runs.front();
  if (runs.size() > 1 || (at != nullptr && at != memory.data())) {
    RNICD_ASSIGN_OR_RETURN(view, Compose(runs, domain.kernel_page_bytes(), at));
    memory = view.bytes();
  }
  ibv_mr* const mr = domain.api().RegMr(domain.pd(), memory.data(), memory.size(), base.value, access);
  if (mr == nullptr) {
    return RegistrationStatus(errno, memory.size(), ReadPinBudget());
  }
  return mr;
}

// For iWARP: such a card may know memory by its address in this process only, whatever base it is given, as siw does.
absl::StatusOr<ibv_mr*> RegisterAtBase(VerbsDomain& domain, VirtualAddress base,
                                       std::span<const std::span<std::byte>> runs, int access) {
  MutexLock lock(domain.context().node().placing);
  return RegisterRuns(domain, base, runs, access, reinterpret_cast<const std::byte*>(base.value));
}

}  // namespace

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
  RNICD_RETURN_IF_ERROR(device.CheckThere());
  const std::vector<std::span<std::byte>> joined = JoinRuns(runs);
  const uint64_t page_bytes = domain->kernel_page_bytes();
  RNICD_RETURN_IF_ERROR(CheckPages(page_bytes, base.value, joined));
  RNICD_RETURN_IF_ERROR(device.AddRegion(domain->context().node()));
  const absl::StatusOr<ibv_mr*> mr = device.iwarp() != nullptr ? RegisterAtBase(*domain, base, joined, access)
                                                               : RegisterRuns(*domain, base, joined, access, nullptr);
  if (!mr.ok()) {
    device.RemoveRegion(domain->context().node());
    return mr.status();
  }
  return std::unique_ptr<Registration>(new Registration(std::move(domain), *mr, joined.size() > 1));
}

absl::StatusOr<std::unique_ptr<Registration>> Registration::MakeOfDmabuf(std::shared_ptr<VerbsDomain> domain,
                                                                         const DeviceDmabufRegistration& request) {
  VerbsDevice& device = domain->device();
  RNICD_RETURN_IF_ERROR(device.CheckThere());
  RNICD_RETURN_IF_ERROR(CheckPlace(domain->kernel_page_bytes(), request.base.value, request.offset));
  RNICD_RETURN_IF_ERROR(device.AddRegion(domain->context().node()));
  ibv_mr* const mr = domain->api().RegDmabufMr(domain->pd(), request.offset, request.length, request.base.value,
                                               request.file, AccessFlags(request.rights));
  if (mr == nullptr) {
    const int error = errno;
    device.RemoveRegion(domain->context().node());
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
  // A card that is gone may work on until it is let go of, so only the kernel's word counts.
  if (error != 0 && !MeansRemoved(error)) {
    return VerbStatus(error, "ibv_dereg_mr");
  }
  live_ = false;
  domain_->device().RemoveRegion(domain_->context().node());
  return absl::OkStatus();
}

}  // namespace rnicd::provider
