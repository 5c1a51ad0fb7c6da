#include "provider/decorator/fault_injecting.h"

#include <string>
#include <utility>

#include "base/status.h"
#include "provider/decorator/inner_connections.h"

namespace rnicd::provider {
namespace {

// The card under an opening, and what is made in that.
class FaultyCard {
 public:
  FaultyCard(FaultPlan& plan, std::string_view adapter)
      : plan_(plan), adapter_(adapter), number_(plan.CardOf(adapter)) {}

  FaultPlan& plan() const { return plan_; }
  bool removed() const { return plan_.CardOf(adapter_) != number_; }
  // Errors: DEVICE_REMOVED.
  absl::Status Check() const { return removed() ? MakeError(ErrorReason::DEVICE_REMOVED) : absl::OkStatus(); }

 private:
  FaultPlan& plan_;
  const std::string adapter_;
  const std::optional<uint64_t> number_;
};

class FaultyRegion final : public DeviceMemoryRegion {
 public:
  FaultyRegion(std::shared_ptr<DeviceMemoryRegion> inner, FaultPlan& plan) : inner_(std::move(inner)), plan_(plan) {}

  const std::shared_ptr<DeviceMemoryRegion>& inner() const { return inner_; }

  LocalToken local_token() const override { return inner_->local_token(); }
  RemoteToken remote_token() const override { return inner_->remote_token(); }
  absl::Status Deregister() override {
    RNICD_RETURN_IF_ERROR(plan_.TakeDeregister());
    return inner_->Deregister();
  }

 private:
  const std::shared_ptr<DeviceMemoryRegion> inner_;
  FaultPlan& plan_;
};

class FaultyQueuePair final : public DeviceQueuePair {
 public:
  FaultyQueuePair(std::unique_ptr<DeviceQueuePair> inner, FaultPlan& plan) : inner_(std::move(inner)), plan_(plan) {}

  static DeviceQueuePair& InnerOf(DeviceQueuePair& pair) { return *static_cast<FaultyQueuePair&>(pair).inner_; }

  QueuePairState state() const override { return inner_->state(); }
  std::string address() const override { return inner_->address(); }
  absl::Status Connect(std::string_view peer_address) override { return inner_->Connect(peer_address); }
  absl::StatusOr<RemoteToken> Enqueue(WorkRequest&& request) override {
    RNICD_RETURN_IF_ERROR(plan_.TakeEnqueue());
    if (auto* bind = std::get_if<BindWork>(&request.work)) {
      bind->region = static_cast<const FaultyRegion&>(*bind->region).inner();  // The card accepts only its own regions.
    }
    return inner_->Enqueue(std::move(request));
  }
  void EnqueueRefused(const Completion& refusal) override { inner_->EnqueueRefused(refusal); }
  void Kick() override { inner_->Kick(); }
  void Flush() override { inner_->Flush(); }
  void Disconnect() override { inner_->Disconnect(); }
  void Shutdown() override { inner_->Shutdown(); }

 private:
  const std::unique_ptr<DeviceQueuePair> inner_;
  FaultPlan& plan_;
};

class FaultyDomain final : public DeviceProtectionDomain {
 public:
  FaultyDomain(std::unique_ptr<DeviceProtectionDomain> inner, const FaultyCard& card)
      : inner_(std::move(inner)), card_(card), plan_(card.plan()) {}

  absl::StatusOr<std::unique_ptr<DeviceMemoryRegion>> RegisterMemory(const DeviceRegistration& registration) override {
    RNICD_RETURN_IF_ERROR(card_.Check());
    RNICD_RETURN_IF_ERROR(plan_.TakeRegister());
    RNICD_ASSIGN_OR_RETURN(std::unique_ptr<DeviceMemoryRegion> region, inner_->RegisterMemory(registration));
    return std::make_unique<FaultyRegion>(std::move(region), plan_);
  }
  absl::StatusOr<std::unique_ptr<DeviceMemoryRegion>> RegisterDmabuf(
      const DeviceDmabufRegistration& registration) override {
    RNICD_RETURN_IF_ERROR(card_.Check());
    RNICD_RETURN_IF_ERROR(plan_.TakeRegister());
    RNICD_ASSIGN_OR_RETURN(std::unique_ptr<DeviceMemoryRegion> region, inner_->RegisterDmabuf(registration));
    return std::make_unique<FaultyRegion>(std::move(region), plan_);
  }
  LocalToken privileged_token() const override { return inner_->privileged_token(); }
  absl::StatusOr<std::shared_ptr<DeviceFastRegion>> CreateFastRegion(uint32_t max_pages, bool remote_access) override {
    RNICD_RETURN_IF_ERROR(card_.Check());
    RNICD_RETURN_IF_ERROR(plan_.TakeCreateFastRegion());
    return inner_->CreateFastRegion(max_pages, remote_access);
  }
  absl::StatusOr<std::shared_ptr<DeviceMemoryWindow>> CreateMemoryWindow() override {
    RNICD_RETURN_IF_ERROR(card_.Check());
    RNICD_RETURN_IF_ERROR(plan_.TakeCreateMemoryWindow());
    return inner_->CreateMemoryWindow();
  }
  absl::StatusOr<std::unique_ptr<DeviceQueuePair>> CreateQueuePair(const QueuePairLimits& limits,
                                                                   DeviceCompletionQueue& receive_queue,
                                                                   DeviceCompletionQueue& initiator_queue,
                                                                   QueuePairListener& listener) override {
    RNICD_RETURN_IF_ERROR(card_.Check());
    RNICD_RETURN_IF_ERROR(plan_.TakeCreateQueuePair());
    RNICD_ASSIGN_OR_RETURN(std::unique_ptr<DeviceQueuePair> pair,
                           inner_->CreateQueuePair(limits, receive_queue, initiator_queue, listener));
    return std::make_unique<FaultyQueuePair>(std::move(pair), plan_);
  }

 private:
  const std::unique_ptr<DeviceProtectionDomain> inner_;
  const FaultyCard card_;
  FaultPlan& plan_;
};

class FaultyAdapter final : public DeviceAdapter {
 public:
  FaultyAdapter(std::unique_ptr<DeviceAdapter> inner, const FaultyCard& card)
      : inner_(std::move(inner)), card_(card), plan_(card.plan()) {}

  const NdkAdapterInfo& info() const override { return inner_->info(); }
  bool removed() const override { return card_.removed(); }
  absl::StatusOr<std::unique_ptr<DeviceProtectionDomain>> CreateProtectionDomain() override {
    RNICD_RETURN_IF_ERROR(card_.Check());
    RNICD_RETURN_IF_ERROR(plan_.TakeCreateProtectionDomain());
    RNICD_ASSIGN_OR_RETURN(std::unique_ptr<DeviceProtectionDomain> domain, inner_->CreateProtectionDomain());
    return std::make_unique<FaultyDomain>(std::move(domain), card_);
  }
  std::unique_ptr<DeviceMapping> AddMapping(std::span<const std::span<std::byte>> runs) override {
    return inner_->AddMapping(runs);
  }
  absl::StatusOr<std::unique_ptr<DeviceCompletionQueue>> CreateCompletionQueue(uint32_t depth) override {
    RNICD_RETURN_IF_ERROR(card_.Check());
    RNICD_RETURN_IF_ERROR(plan_.TakeCreateCompletionQueue());
    return inner_->CreateCompletionQueue(depth);
  }
  std::vector<IpAddress> addresses() const override { return inner_->addresses(); }
  absl::StatusOr<std::unique_ptr<DeviceListener>> Listen(const NetworkAddress& address,
                                                         std::weak_ptr<RequestListener> listener) override {
    return ListenInside(*inner_, FaultyQueuePair::InnerOf, address, std::move(listener));
  }
  absl::StatusOr<std::unique_ptr<DeviceConnector>> CreateConnector(std::weak_ptr<ConnectorListener> listener) override {
    return CreateInnerConnector(*inner_, FaultyQueuePair::InnerOf, std::move(listener));
  }
  absl::StatusOr<IpAddress> LocateQueuePair(std::string_view peer_address) const override {
    return inner_->LocateQueuePair(peer_address);
  }

 private:
  const std::unique_ptr<DeviceAdapter> inner_;
  const FaultyCard card_;
  FaultPlan& plan_;
};

}  // namespace

void FaultPlan::FailRegister(absl::Status failure, uint64_t count) { Plan(register_, std::move(failure), count); }

void FaultPlan::FailDeregister(absl::Status failure, uint64_t count) { Plan(deregister_, std::move(failure), count); }

void FaultPlan::FailCreateProtectionDomain(absl::Status failure, uint64_t count) {
  Plan(create_protection_domain_, std::move(failure), count);
}

void FaultPlan::FailCreateCompletionQueue(absl::Status failure, uint64_t count) {
  Plan(create_completion_queue_, std::move(failure), count);
}

void FaultPlan::FailCreateQueuePair(absl::Status failure, uint64_t count) {
  Plan(create_queue_pair_, std::move(failure), count);
}

void FaultPlan::FailCreateFastRegion(absl::Status failure, uint64_t count) {
  Plan(create_fast_region_, std::move(failure), count);
}

void FaultPlan::FailCreateMemoryWindow(absl::Status failure, uint64_t count) {
  Plan(create_memory_window_, std::move(failure), count);
}

void FaultPlan::FailEnqueue(absl::Status failure, uint64_t count) { Plan(enqueue_, std::move(failure), count); }

void FaultPlan::Unplug(std::string_view adapter) {
  MutexLock lock(mutex_);
  Slot& slot = slots_[std::string(adapter)];
  ++slot.removals;
  slot.empty = true;
}

void FaultPlan::Plug(std::string_view adapter) {
  MutexLock lock(mutex_);
  slots_[std::string(adapter)].empty = false;
}

std::optional<uint64_t> FaultPlan::CardOf(std::string_view adapter) const {
  MutexLock lock(mutex_);
  const auto slot = slots_.find(adapter);
  if (slot == slots_.end()) {
    return 0;
  }
  return slot->second.empty ? std::nullopt : std::optional(slot->second.removals);
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
  // Each caller gets its own status: sharing one between threads is sound, but the sanitizer cannot see into abseil.
  return MakeError(ErrorInfoOf(fault.failure));
}

absl::StatusOr<std::unique_ptr<DeviceAdapter>> FaultInjectingProvider::OpenAdapter(std::string_view adapter_name) {
  const FaultyCard card(plan_, adapter_name);
  if (!plan_.CardOf(adapter_name).has_value()) {
    return MakeError(ErrorReason::ADAPTER_NOT_FOUND, "adapter_name");
  }
  RNICD_ASSIGN_OR_RETURN(std::unique_ptr<DeviceAdapter> adapter, inner_.OpenAdapter(adapter_name));
  return std::make_unique<FaultyAdapter>(std::move(adapter), card);
}

std::vector<AdapterDescription> FaultInjectingProvider::ListAdapters() const {
  std::vector<AdapterDescription> adapters = inner_.ListAdapters();
  std::erase_if(adapters,
                [this](const AdapterDescription& adapter) { return !plan_.CardOf(adapter.name).has_value(); });
  return adapters;
}

}  // namespace rnicd::provider
