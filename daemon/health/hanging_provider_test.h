#pragma once

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "provider/api/device.h"

namespace rnicd::health {

// The one of a probe's two calls that hangs.
enum class HangAt { kRegister, kDeregister };

// The adapters that hang now, and the call in which each hangs.
// Threads: safe.
class HangPlan {
 public:
  void Hang(const std::string& adapter, HangAt at) {
    MutexLock lock(mutex_);
    hanging_.insert({adapter, at});
  }
  void Release() {
    MutexLock lock(mutex_);
    hanging_.clear();
    changed_.NotifyAll();
  }
  // Returns as soon as the adapter does not hang in that call.
  void Pass(const std::string& adapter, HangAt at) {
    MutexLock lock(mutex_);
    while (hanging_.contains({adapter, at})) {
      waiting_.insert({adapter, at});
      changed_.NotifyAll();
      changed_.Wait(mutex_);
    }
    waiting_.erase({adapter, at});
  }
  bool IsHanging(const std::string& adapter, HangAt at) {
    MutexLock lock(mutex_);
    return waiting_.contains({adapter, at});
  }
  void WaitUntilHanging(const std::string& adapter, HangAt at) {
    MutexLock lock(mutex_);
    while (!waiting_.contains({adapter, at})) {
      changed_.Wait(mutex_);
    }
  }

 private:
  using HangPoint = std::pair<std::string, HangAt>;
  Mutex mutex_;
  ConditionVariable changed_;
  std::set<HangPoint> hanging_ RNICD_GUARDED_BY(mutex_);
  std::set<HangPoint> waiting_ RNICD_GUARDED_BY(mutex_);
};

// A provider whose registrations do not return as long as the plan requires. Implements only what a probe uses.
class HangingProvider final : public provider::Provider {
 public:
  HangingProvider(provider::Provider& inner, HangPlan& plan) : inner_(inner), plan_(plan) {}

  std::string_view name() const override { return inner_.name(); }
  std::vector<provider::AdapterDescription> ListAdapters() const override { return inner_.ListAdapters(); }
  uint64_t live_regions() const override { return inner_.live_regions(); }
  provider::FastRegistrationCounts fast_registrations() const override { return inner_.fast_registrations(); }
  absl::StatusOr<std::unique_ptr<provider::DeviceAdapter>> OpenAdapter(std::string_view adapter_name) override {
    auto adapter = inner_.OpenAdapter(adapter_name);
    if (!adapter.ok()) {
      return adapter.status();
    }
    return std::make_unique<Adapter>(std::string(adapter_name), *std::move(adapter), plan_);
  }

 private:
  class Region final : public provider::DeviceMemoryRegion {
   public:
    Region(std::string adapter, std::unique_ptr<provider::DeviceMemoryRegion> inner, HangPlan& plan)
        : adapter_(std::move(adapter)), inner_(std::move(inner)), plan_(plan) {}
    LocalToken local_token() const override { return inner_->local_token(); }
    RemoteToken remote_token() const override { return inner_->remote_token(); }
    absl::Status Deregister() override {
      plan_.Pass(adapter_, HangAt::kDeregister);
      return inner_->Deregister();
    }

   private:
    const std::string adapter_;
    const std::unique_ptr<provider::DeviceMemoryRegion> inner_;
    HangPlan& plan_;
  };

  class Domain final : public provider::DeviceProtectionDomain {
   public:
    Domain(std::string adapter, std::unique_ptr<provider::DeviceProtectionDomain> inner, HangPlan& plan)
        : adapter_(std::move(adapter)), inner_(std::move(inner)), plan_(plan) {}
    absl::StatusOr<std::unique_ptr<provider::DeviceMemoryRegion>> RegisterMemory(
        const provider::DeviceRegistration& registration) override {
      plan_.Pass(adapter_, HangAt::kRegister);
      auto region = inner_->RegisterMemory(registration);
      if (!region.ok()) {
        return region.status();
      }
      return std::make_unique<Region>(adapter_, *std::move(region), plan_);
    }
    LocalToken privileged_token() const override { return inner_->privileged_token(); }
    absl::StatusOr<std::shared_ptr<provider::DeviceFastRegion>> CreateFastRegion(uint32_t max_pages,
                                                                                 bool remote_access) override {
      return inner_->CreateFastRegion(max_pages, remote_access);
    }
    absl::StatusOr<std::shared_ptr<provider::DeviceMemoryWindow>> CreateMemoryWindow() override {
      return inner_->CreateMemoryWindow();
    }
    absl::StatusOr<std::unique_ptr<provider::DeviceQueuePair>> CreateQueuePair(
        const QueuePairLimits& limits, provider::DeviceCompletionQueue& receive_queue,
        provider::DeviceCompletionQueue& initiator_queue, provider::QueuePairListener& listener) override {
      return inner_->CreateQueuePair(limits, receive_queue, initiator_queue, listener);
    }

   private:
    const std::string adapter_;
    const std::unique_ptr<provider::DeviceProtectionDomain> inner_;
    HangPlan& plan_;
  };

  class Adapter final : public provider::DeviceAdapter {
   public:
    Adapter(std::string adapter, std::unique_ptr<provider::DeviceAdapter> inner, HangPlan& plan)
        : adapter_(std::move(adapter)), inner_(std::move(inner)), plan_(plan) {}
    const NdkAdapterInfo& info() const override { return inner_->info(); }
    bool removed() const override { return inner_->removed(); }
    absl::StatusOr<std::unique_ptr<provider::DeviceProtectionDomain>> CreateProtectionDomain() override {
      auto domain = inner_->CreateProtectionDomain();
      if (!domain.ok()) {
        return domain.status();
      }
      return std::make_unique<Domain>(adapter_, *std::move(domain), plan_);
    }
    absl::StatusOr<std::unique_ptr<provider::DeviceCompletionQueue>> CreateCompletionQueue(uint32_t depth) override {
      return inner_->CreateCompletionQueue(depth);
    }

   private:
    const std::string adapter_;
    const std::unique_ptr<provider::DeviceAdapter> inner_;
    HangPlan& plan_;
  };

  provider::Provider& inner_;
  HangPlan& plan_;
};

}  // namespace rnicd::health
