#include "provider/soft/soft_provider.h"

#include <string>
#include <utility>

#include "base/status.h"
#include "provider/engine/engine_queue_pair.h"
#include "provider/soft/net/soft_connector.h"
#include "provider/soft/net/soft_worker.h"
#include "provider/soft/soft_endpoint.h"
#include "provider/soft/soft_fabric.h"
#include "provider/soft/soft_fast_region.h"
#include "provider/soft/soft_memory_region.h"
#include "provider/soft/soft_nic.h"
#include "provider/soft/soft_window.h"

namespace rnicd::provider {
namespace {

// Core keeps the completions, so a soft queue has no state.
class SoftCompletionQueue final : public DeviceCompletionQueue {
 public:
  absl::Status Resize(uint32_t /*depth*/) override { return absl::OkStatus(); }
};

class SoftProtectionDomain final : public DeviceProtectionDomain {
 public:
  explicit SoftProtectionDomain(std::shared_ptr<SoftNic> nic) : nic_(std::move(nic)), domain_(nic_->NextDomain()) {}

  absl::StatusOr<std::unique_ptr<DeviceMemoryRegion>> RegisterMemory(const DeviceRegistration& registration) override {
    return SoftMemoryRegion::Register(nic_, domain_, registration);
  }
  absl::StatusOr<std::shared_ptr<DeviceFastRegion>> CreateFastRegion(uint32_t max_pages,
                                                                     bool /*remote_access*/) override {
    if (max_pages > nic_->max_fast_register_pages()) {
      return MakeError(ErrorReason::PAGE_COUNT_UNSUPPORTED, "adapter_page_count");
    }
    return SoftFastRegion::Create(nic_, domain_);
  }
  LocalToken privileged_token() const override { return SoftKeyTable::PrivilegedTokenOf(domain_); }
  absl::StatusOr<std::shared_ptr<DeviceMemoryWindow>> CreateMemoryWindow() override {
    return SoftWindow::Create(nic_, domain_);
  }
  absl::StatusOr<std::unique_ptr<DeviceQueuePair>> CreateQueuePair(const QueuePairLimits& limits,
                                                                   DeviceCompletionQueue& /*receive_queue*/,
                                                                   DeviceCompletionQueue& /*initiator_queue*/,
                                                                   QueuePairListener& listener) override {
    return std::make_unique<EngineQueuePair>(SoftEndpoint::Create(nic_, domain_, limits, listener));
  }

 private:
  const std::shared_ptr<SoftNic> nic_;
  const uint64_t domain_;
};

// In the range for tests between devices. Source: RFC 2544.
IpAddress DefaultAddress(uint32_t index) {
  const uint32_t host = index + 1;
  return IpAddress(
      {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 198, 18, static_cast<uint8_t>(host >> 8), static_cast<uint8_t>(host)});
}

class SoftAdapter final : public DeviceAdapter {
 public:
  explicit SoftAdapter(std::shared_ptr<SoftNic> nic) : nic_(std::move(nic)) {}

  const NdkAdapterInfo& info() const override { return nic_->info(); }
  absl::StatusOr<std::unique_ptr<DeviceProtectionDomain>> CreateProtectionDomain() override {
    return std::make_unique<SoftProtectionDomain>(nic_);
  }
  absl::StatusOr<std::unique_ptr<DeviceCompletionQueue>> CreateCompletionQueue(uint32_t /*depth*/) override {
    return std::make_unique<SoftCompletionQueue>();
  }
  std::vector<IpAddress> addresses() const override { return {nic_->address()}; }
  absl::StatusOr<std::unique_ptr<DeviceListener>> Listen(const NetworkAddress& address,
                                                         std::weak_ptr<RequestListener> listener) override {
    if (address.ip != nic_->address() || address.port == 0) {
      return MakeError(ErrorReason::ADDRESS_INVALID, "local");
    }
    return nic_->fabric().net().Listen(address, std::move(listener));
  }
  absl::StatusOr<std::unique_ptr<DeviceConnector>> CreateConnector(std::weak_ptr<ConnectorListener> listener) override {
    return std::make_unique<SoftConnectorHandle>(
        std::make_shared<SoftConnector>(nic_->fabric().net(), nic_->address(), std::move(listener)));
  }
  absl::StatusOr<IpAddress> LocateQueuePair(std::string_view peer_address) const override {
    const std::shared_ptr<QueuePairEngine> pair = nic_->fabric().Find(peer_address);
    if (pair == nullptr) {
      return MakeError(ErrorReason::QP_ADDRESS_UNKNOWN, "peer_address");
    }
    return static_cast<const SoftEndpoint&>(EngineQueuePair::CardOf(*pair)).nic().address();
  }

 private:
  const std::shared_ptr<SoftNic> nic_;
};

}  // namespace

std::vector<IpAddress> AddressesOf(const SoftOptions& options) {
  std::vector<IpAddress> addresses = options.addresses;
  while (addresses.size() < options.adapters) {
    addresses.push_back(DefaultAddress(static_cast<uint32_t>(addresses.size())));
  }
  return addresses;
}

SoftProvider::SoftProvider(const SoftOptions& options, RandomSource& random, std::unique_ptr<SoftWorker> worker)
    : fabric_(std::make_shared<SoftFabric>(
          random, worker != nullptr ? std::move(worker) : std::make_unique<ThreadWorker>(), options.network)) {
  for (const IpAddress& address : AddressesOf(options)) {
    const std::string name = "soft" + std::to_string(nics_.size());
    nics_.push_back(std::make_shared<SoftNic>(name, address, options, random, fabric_));
  }
  fabric_->traffic().Start();
}

// The last owner destroys the fabric; without Stop that could be the worker's own thread, which cannot join itself.
SoftProvider::~SoftProvider() {
  fabric_->traffic().Stop();
  fabric_->worker().Stop();
}

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

FastRegistrationCounts SoftProvider::fast_registrations() const {
  FastRegistrationCounts counts;
  for (const auto& nic : nics_) {
    counts.native += nic->fast_registrations();
  }
  return counts;
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
