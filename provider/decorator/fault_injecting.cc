#include "provider/decorator/fault_injecting.h"

#include <utility>

#include "base/status.h"

namespace rnicd::provider {
namespace {

class FaultyRegion final : public DeviceMemoryRegion {
 public:
  FaultyRegion(std::unique_ptr<DeviceMemoryRegion> inner, FaultPlan& plan) : inner_(std::move(inner)), plan_(plan) {}

  LocalToken local_token() const override { return inner_->local_token(); }
  RemoteToken remote_token() const override { return inner_->remote_token(); }
  absl::Status Deregister() override {
    RNICD_RETURN_IF_ERROR(plan_.TakeDeregister());
    return inner_->Deregister();
  }

 private:
  const std::unique_ptr<DeviceMemoryRegion> inner_;
  FaultPlan& plan_;
};

class FaultyDomain final : public DeviceProtectionDomain {
 public:
  FaultyDomain(std::unique_ptr<DeviceProtectionDomain> inner, FaultPlan& plan)
      : inner_(std::move(inner)), plan_(plan) {}

  absl::StatusOr<std::unique_ptr<DeviceMemoryRegion>> RegisterMemory(const DeviceRegistration& registration) override {
    RNICD_RETURN_IF_ERROR(plan_.TakeRegister());
    RNICD_ASSIGN_OR_RETURN(std::unique_ptr<DeviceMemoryRegion> region, inner_->RegisterMemory(registration));
    return std::make_unique<FaultyRegion>(std::move(region), plan_);
  }

 private:
  const std::unique_ptr<DeviceProtectionDomain> inner_;
  FaultPlan& plan_;
};

class FaultyAdapter final : public DeviceAdapter {
 public:
  FaultyAdapter(std::unique_ptr<DeviceAdapter> inner, FaultPlan& plan) : inner_(std::move(inner)), plan_(plan) {}

  const NdkAdapterInfo& info() const override { return inner_->info(); }
  absl::StatusOr<std::unique_ptr<DeviceProtectionDomain>> CreateProtectionDomain() override {
    RNICD_RETURN_IF_ERROR(plan_.TakeCreateProtectionDomain());
    RNICD_ASSIGN_OR_RETURN(std::unique_ptr<DeviceProtectionDomain> domain, inner_->CreateProtectionDomain());
    return std::make_unique<FaultyDomain>(std::move(domain), plan_);
  }

 private:
  const std::unique_ptr<DeviceAdapter> inner_;
  FaultPlan& plan_;
};

}  // namespace

void FaultPlan::FailRegister(absl::Status failure, uint64_t count) { Plan(register_, std::move(failure), count); }

void FaultPlan::FailDeregister(absl::Status failure, uint64_t count) { Plan(deregister_, std::move(failure), count); }

void FaultPlan::FailCreateProtectionDomain(absl::Status failure, uint64_t count) {
  Plan(create_protection_domain_, std::move(failure), count);
}

void FaultPlan::Plan(Fault& fault, absl::Status failure, uint64_t count) {
  MutexLock lock(mutex_);
  fault = Fault{std::move(failure), count};
}

absl::Status FaultPlan::Take(Fault& fault) {
  MutexLock lock(mutex_);
  if (fault.remaining == 0) {
    return absl::OkStatus();
  }
  --fault.remaining;
  // A status of the caller's own: sharing one between threads is sound, but the sanitizer cannot see into abseil.
  return MakeError(ErrorInfoOf(fault.failure));
}

absl::StatusOr<std::unique_ptr<DeviceAdapter>> FaultInjectingProvider::OpenAdapter(std::string_view adapter_name) {
  RNICD_ASSIGN_OR_RETURN(std::unique_ptr<DeviceAdapter> adapter, inner_.OpenAdapter(adapter_name));
  return std::make_unique<FaultyAdapter>(std::move(adapter), plan_);
}

}  // namespace rnicd::provider
