#include "provider/soft/soft_provider.h"

#include <string>
#include <thread>
#include <utility>

#include "base/status.h"
#include "provider/soft/soft_nic.h"
#include "provider/soft/soft_region_memory.h"

namespace rnicd::provider {
namespace {

class SoftMemoryRegion final : public DeviceMemoryRegion {
 public:
  SoftMemoryRegion(std::shared_ptr<SoftNic> nic, SoftKeyTable::Keys keys, std::shared_ptr<SoftRegionMemory> memory)
      : nic_(std::move(nic)), keys_(keys), memory_(std::move(memory)) {}
  ~SoftMemoryRegion() override { Revoke(); }

  LocalToken local_token() const override { return keys_.local; }
  RemoteToken remote_token() const override { return keys_.remote; }
  absl::Status Deregister() override {
    Revoke();
    return absl::OkStatus();
  }

 private:
  void Revoke() {
    if (memory_ != nullptr) {
      nic_->keys().Remove(keys_.local);
      memory_->Revoke();
      memory_.reset();
    }
  }

  const std::shared_ptr<SoftNic> nic_;
  const SoftKeyTable::Keys keys_;
  std::shared_ptr<SoftRegionMemory> memory_;
};

class SoftProtectionDomain final : public DeviceProtectionDomain {
 public:
  explicit SoftProtectionDomain(std::shared_ptr<SoftNic> nic) : nic_(std::move(nic)), domain_(nic_->NextDomain()) {}

  absl::StatusOr<std::unique_ptr<DeviceMemoryRegion>> RegisterMemory(const DeviceRegistration& registration) override {
    if (nic_->register_delay().count() > 0) {
      std::this_thread::sleep_for(nic_->register_delay());
    }
    auto memory = std::make_shared<SoftRegionMemory>(domain_, registration);
    RNICD_ASSIGN_OR_RETURN(const SoftKeyTable::Keys keys, nic_->keys().Insert(memory));
    return std::make_unique<SoftMemoryRegion>(nic_, keys, std::move(memory));
  }

 private:
  const std::shared_ptr<SoftNic> nic_;
  const uint64_t domain_;
};

class SoftAdapter final : public DeviceAdapter {
 public:
  explicit SoftAdapter(std::shared_ptr<SoftNic> nic) : nic_(std::move(nic)) {}

  const NdkAdapterInfo& info() const override { return nic_->info(); }
  absl::StatusOr<std::unique_ptr<DeviceProtectionDomain>> CreateProtectionDomain() override {
    return std::make_unique<SoftProtectionDomain>(nic_);
  }

 private:
  const std::shared_ptr<SoftNic> nic_;
};

}  // namespace

SoftProvider::SoftProvider(const SoftOptions& options, RandomSource& random) {
  nics_.reserve(options.adapters);
  for (uint32_t index = 0; index < options.adapters; ++index) {
    nics_.push_back(std::make_shared<SoftNic>("soft" + std::to_string(index), options, random));
  }
}

SoftProvider::~SoftProvider() = default;

std::vector<AdapterDescription> SoftProvider::ListAdapters() const {
  std::vector<AdapterDescription> adapters;
  adapters.reserve(nics_.size());
  for (const auto& nic : nics_) {
    adapters.push_back(AdapterDescription{.name = nic->name(), .numa_node = -1, .info = nic->info()});
  }
  return adapters;
}

absl::StatusOr<std::unique_ptr<DeviceAdapter>> SoftProvider::OpenAdapter(std::string_view adapter_name) {
  std::shared_ptr<SoftNic> nic = FindNic(adapter_name);
  if (nic == nullptr) {
    return MakeError(ErrorReason::ADAPTER_NOT_FOUND, "adapter_name");
  }
  return std::make_unique<SoftAdapter>(std::move(nic));
}

uint64_t SoftProvider::live_regions() const {
  uint64_t regions = 0;
  for (const auto& nic : nics_) {
    regions += nic->keys().size();
  }
  return regions;
}

std::shared_ptr<SoftNic> SoftProvider::FindNic(std::string_view adapter_name) const {
  for (const auto& nic : nics_) {
    if (nic->name() == adapter_name) {
      return nic;
    }
  }
  return nullptr;
}

}  // namespace rnicd::provider
