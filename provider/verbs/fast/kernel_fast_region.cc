#include "provider/verbs/fast/kernel_fast_region.h"

#include <array>
#include <cerrno>
#include <utility>

#include "base/status.h"
#include "base/units.h"
#include "provider/verbs/fast/kernel_chain.h"
#include "provider/verbs/fast/prepared_request.h"

namespace rnicd::provider {
namespace {

uint32_t ModuleAccess(const AccessRights& rights) {
  const int access = AccessFlags(rights);
  return ((access & IBV_ACCESS_LOCAL_WRITE) != 0 ? RNICD_FR_LOCAL_WRITE : 0U) |
         ((access & IBV_ACCESS_REMOTE_READ) != 0 ? RNICD_FR_REMOTE_READ : 0U) |
         ((access & IBV_ACCESS_REMOTE_WRITE) != 0 ? RNICD_FR_REMOTE_WRITE : 0U);
}

}  // namespace

absl::StatusOr<std::shared_ptr<KernelFastRegion>> KernelFastRegion::Create(std::shared_ptr<VerbsDomain> domain,
                                                                           uint32_t max_pages) {
  RNICD_ASSIGN_OR_RETURN(std::unique_ptr<Registration> placeholder, RegisterPlaceholder(domain));
  std::shared_ptr<KernelFastRegion> region(new KernelFastRegion(std::move(domain), std::move(placeholder), max_pages));
  MutexLock lock(region->mutex_);
  RNICD_RETURN_IF_ERROR(region->MakeRegion());
  return region;
}

KernelFastRegion::KernelFastRegion(std::shared_ptr<VerbsDomain> domain, std::unique_ptr<Registration> placeholder,
                                   uint32_t max_pages)
    : domain_(std::move(domain)),
      engine_(domain_->kernel_engine()),
      placeholder_(std::move(placeholder)),
      max_pages_(max_pages),
      issued_(placeholder_->lkey()) {}

KernelFastRegion::~KernelFastRegion() {
  Retire();
  DestroyRegion();
}

absl::Status KernelFastRegion::MakeRegion() {
  rnicd_fr_create_region made = {};
  RNICD_RETURN_IF_ERROR(ModuleStatus(engine_->module().CreateRegion(engine_->file(), max_pages_, made), 0));
  number_ = made.region;
  std::copy(std::begin(made.keys), std::end(made.keys), keys_.begin());
  return absl::OkStatus();
}

bool KernelFastRegion::DestroyRegion() {
  MutexLock lock(mutex_);
  const int error = number_ != 0 ? engine_->module().DestroyRegion(engine_->file(), number_) : 0;
  number_ = 0;
  return error == 0 || error == ENODEV;
}

uint32_t KernelFastRegion::number() {
  MutexLock lock(mutex_);
  return number_;
}

bool KernelFastRegion::HasKey(uint32_t number, uint32_t slot, uint32_t token) {
  MutexLock lock(mutex_);
  return number == number_ && keys_[slot] == (token & ~uint32_t{0xff});
}

void KernelFastRegion::RecordKey(uint32_t slot, uint32_t key) {
  if (key == 0) {
    DestroyRegion();
    return;
  }
  MutexLock lock(mutex_);
  keys_[slot] = key;
}

absl::Status KernelFastRegion::Prepare(const FastRegisterWork& work, PreparedRequest& prepared) {
  if (prepared.kernel == nullptr) {
    prepared.kernel = std::make_unique<KernelRegistration>();
  }
  KernelRegistration& registration = *prepared.kernel;
  RNICD_RETURN_IF_ERROR(engine_->Pin(work.runs, registration.pinned));
  registration.rights = work.rights;
  rnicd_fr_op& op = registration.op;
  op = {};
  op.kind = RNICD_FR_REGISTER;
  op.base = work.base.value;
  op.length = work.length;
  op.offset = static_cast<uint32_t>(work.base.value % kNdkPageBytes);
  op.access = ModuleAccess(work.rights);
  op.run_count = static_cast<uint32_t>(registration.pinned.runs.size());
  {
    MutexLock lock(mutex_);
    if (number_ == 0) {
      RNICD_RETURN_IF_ERROR(MakeRegion());
    }
    op.region = number_;
    op.slot = next_slot_;
    op.key = next_byte_[op.slot]++;
    registration.token = keys_[op.slot] | op.key;
    next_slot_ = (next_slot_ + 1) % RNICD_FR_SLOTS;
  }
  prepared.uses_kernel = true;
  return absl::OkStatus();
}

bool KernelFastRegion::Invalidate() { return KernelChain(*engine_).End(*this, std::nullopt, /*retire=*/false); }

bool KernelFastRegion::InvalidateToken(uint32_t token, std::optional<uint64_t> /*arrived_at*/) {
  return KernelChain(*engine_).End(*this, token, /*retire=*/false);
}

void KernelFastRegion::Retire() { KernelChain(*engine_).End(*this, std::nullopt, /*retire=*/true); }

}  // namespace rnicd::provider
