#include "provider/decorator/held_registrations.h"

#include <chrono>
#include <thread>
#include <utility>

#include "base/status.h"

namespace rnicd::provider {
namespace {

using Held = std::function<bool()>;

class HeldDomain final : public DeviceProtectionDomain {
 public:
  HeldDomain(std::unique_ptr<DeviceProtectionDomain> inner, const Held& held) : inner_(std::move(inner)), held_(held) {}

  absl::StatusOr<std::unique_ptr<DeviceMemoryRegion>> RegisterMemory(const DeviceRegistration& registration) override {
    Wait();
    return inner_->RegisterMemory(registration);
  }
  absl::StatusOr<std::unique_ptr<DeviceMemoryRegion>> RegisterDmabuf(
      const DeviceDmabufRegistration& registration) override {
    Wait();
    return inner_->RegisterDmabuf(registration);
  }
  LocalToken privileged_token() const override { return inner_->privileged_token(); }
  absl::StatusOr<std::shared_ptr<DeviceFastRegion>> CreateFastRegion(uint32_t max_pages, bool remote_access) override {
    Wait();
    return inner_->CreateFastRegion(max_pages, remote_access);
  }
  absl::StatusOr<std::shared_ptr<DeviceMemoryWindow>> CreateMemoryWindow() override {
    return inner_->CreateMemoryWindow();
  }
  absl::StatusOr<std::unique_ptr<DeviceQueuePair>> CreateQueuePair(const QueuePairLimits& limits,
                                                                   DeviceCompletionQueue& receive_queue,
                                                                   DeviceCompletionQueue& initiator_queue,
                                                                   QueuePairListener& listener) override {
    return inner_->CreateQueuePair(limits, receive_queue, initiator_queue, listener);
  }

 private:
  void Wait() const {
    while (held_()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  const std::unique_ptr<DeviceProtectionDomain> inner_;
  const Held& held_;
};

class HeldAdapter final : public DeviceAdapter {
 public:
  HeldAdapter(std::unique_ptr<DeviceAdapter> inner, const Held& held) : inner_(std::move(inner)), held_(held) {}

  const NdkAdapterInfo& info() const override { return inner_->info(); }
  absl::StatusOr<std::unique_ptr<DeviceProtectionDomain>> CreateProtectionDomain() override {
    RNICD_ASSIGN_OR_RETURN(std::unique_ptr<DeviceProtectionDomain> domain, inner_->CreateProtectionDomain());
    return std::make_unique<HeldDomain>(std::move(domain), held_);
  }
  absl::StatusOr<std::unique_ptr<DeviceCompletionQueue>> CreateCompletionQueue(uint32_t depth) override {
    return inner_->CreateCompletionQueue(depth);
  }
  std::unique_ptr<DeviceMapping> AddMapping(std::span<const std::span<std::byte>> runs) override {
    return inner_->AddMapping(runs);
  }
  bool removed() const override { return inner_->removed(); }
  std::vector<IpAddress> addresses() const override { return inner_->addresses(); }
  absl::StatusOr<std::unique_ptr<DeviceListener>> Listen(const NetworkAddress& address,
                                                         std::weak_ptr<RequestListener> listener) override {
    return inner_->Listen(address, std::move(listener));
  }
  absl::StatusOr<std::unique_ptr<DeviceConnector>> CreateConnector(std::weak_ptr<ConnectorListener> listener) override {
    return inner_->CreateConnector(std::move(listener));
  }
  absl::StatusOr<IpAddress> LocateQueuePair(std::string_view peer_address) const override {
    return inner_->LocateQueuePair(peer_address);
  }

 private:
  const std::unique_ptr<DeviceAdapter> inner_;
  const Held& held_;
};

}  // namespace

HeldProvider::HeldProvider(std::unique_ptr<Provider> inner, std::function<bool()> held)
    : inner_(std::move(inner)), held_(std::move(held)) {}

absl::StatusOr<std::unique_ptr<DeviceAdapter>> HeldProvider::OpenAdapter(std::string_view adapter_name) {
  RNICD_ASSIGN_OR_RETURN(std::unique_ptr<DeviceAdapter> adapter, inner_->OpenAdapter(adapter_name));
  return std::make_unique<HeldAdapter>(std::move(adapter), held_);
}

}  // namespace rnicd::provider
