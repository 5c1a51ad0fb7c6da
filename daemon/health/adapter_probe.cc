#include "daemon/health/adapter_probe.h"

#include <array>
#include <cstdint>
#include <utility>

#include "base/ndk/access_rights.h"
#include "base/status.h"
#include "base/units.h"

namespace rnicd::health {

AdapterProbe::AdapterProbe(provider::Provider& provider, Os& os, std::string adapter)
    : provider_(provider), os_(os), adapter_(std::move(adapter)) {}

AdapterProbe::~AdapterProbe() {
  if (!page_.empty()) {
    // If this fails, the kernel unmaps the page when the process exits.
    (void)os_.Unmap(page_);
  }
}

absl::Status AdapterProbe::Run() {
  absl::Status status = Try();
  if (!status.ok()) {
    device_.reset();
  }
  return status;
}

absl::Status AdapterProbe::Try() {
  RNICD_RETURN_IF_ERROR(TakePage());
  if (device_ != nullptr && device_->removed()) {
    device_.reset();
  }
  if (device_ == nullptr) {
    RNICD_ASSIGN_OR_RETURN(device_, provider_.OpenAdapter(adapter_));
  }
  RNICD_ASSIGN_OR_RETURN(const std::unique_ptr<provider::DeviceProtectionDomain> domain,
                         device_->CreateProtectionDomain());
  return RegisterAndDeregister(*domain);
}

// The mapping keeps the file open, so that the probe costs no descriptor.
absl::Status AdapterProbe::TakePage() {
  if (!page_.empty()) {
    return absl::OkStatus();
  }
  RNICD_ASSIGN_OR_RETURN(const UniqueFd file, os_.CreateMemoryFile(kNdkPageBytes, kNdkPageBytes));
  RNICD_ASSIGN_OR_RETURN(const std::span<std::byte> page, os_.Map(file.get(), kNdkPageBytes));
  absl::Status populated = os_.Populate(page);
  if (!populated.ok()) {
    (void)os_.Unmap(page);
    return populated;
  }
  page_ = page;
  return absl::OkStatus();
}

absl::Status AdapterProbe::RegisterAndDeregister(provider::DeviceProtectionDomain& domain) {
  const std::array<std::span<std::byte>, 1> runs = {page_};
  const provider::DeviceRegistration registration = {
      .base = VirtualAddress{reinterpret_cast<uintptr_t>(page_.data())},
      .length = page_.size(),
      .runs = runs,
      .rights = AccessRights{.local_write = true},
  };
  RNICD_ASSIGN_OR_RETURN(std::unique_ptr<provider::DeviceMemoryRegion> region, domain.RegisterMemory(registration));
  holds_region_.store(true);
  absl::Status status = region->Deregister();
  region.reset();
  holds_region_.store(false);
  return status;
}

}  // namespace rnicd::health
