#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "provider/api/device.h"

namespace rnicd::provider {

// Planned failures of device calls. Shared by the test that plans them and the provider that injects them.

// Threads: safe.
class FaultPlan {
 public:
  // The next `count` calls fail with `failure`.
  void FailRegister(absl::Status failure, uint64_t count);
  void FailDeregister(absl::Status failure, uint64_t count);
  void FailCreateProtectionDomain(absl::Status failure, uint64_t count);
  void FailCreateCompletionQueue(absl::Status failure, uint64_t count);
  void FailCreateQueuePair(absl::Status failure, uint64_t count);
  void FailCreateFastRegion(absl::Status failure, uint64_t count);
  void FailCreateMemoryWindow(absl::Status failure, uint64_t count);
  // Fails the enqueue on any queue pair; the request is then refused when it is posted.
  void FailEnqueue(absl::Status failure, uint64_t count);

  // Removes the card: it is not listed, and what is open on it makes nothing new. Plug puts another in its place.
  void Unplug(std::string_view adapter);
  void Plug(std::string_view adapter);
  // Number of the card with this name; empty while there is none.
  std::optional<uint64_t> CardOf(std::string_view adapter) const;

  // Called by the device calls: the failure to report, or ok.
  absl::Status TakeRegister() { return Take(register_); }
  absl::Status TakeDeregister() { return Take(deregister_); }
  absl::Status TakeCreateProtectionDomain() { return Take(create_protection_domain_); }
  absl::Status TakeCreateCompletionQueue() { return Take(create_completion_queue_); }
  absl::Status TakeCreateQueuePair() { return Take(create_queue_pair_); }
  absl::Status TakeCreateFastRegion() { return Take(create_fast_region_); }
  absl::Status TakeCreateMemoryWindow() { return Take(create_memory_window_); }
  absl::Status TakeEnqueue() { return Take(enqueue_); }

 private:
  struct Fault {
    absl::Status failure;
    uint64_t remaining = 0;
  };
  void Plan(Fault& fault, absl::Status failure, uint64_t count);
  absl::Status Take(Fault& fault);

  // Times that a card was removed, and whether one is in its place.
  struct Slot {
    uint64_t removals = 0;
    bool empty = false;
  };

  mutable Mutex mutex_;
  std::map<std::string, Slot, std::less<>> slots_ RNICD_GUARDED_BY(mutex_);
  Fault register_;
  Fault deregister_;
  Fault create_protection_domain_;
  Fault create_completion_queue_;
  Fault create_queue_pair_;
  Fault create_fast_region_;
  Fault create_memory_window_;
  Fault enqueue_;
};

// Decorator that forwards to another provider, except for the planned failures. For tests of core's error handling.
class FaultInjectingProvider final : public Provider {
 public:
  // Both outlive this provider.
  FaultInjectingProvider(Provider& inner, FaultPlan& plan) : inner_(inner), plan_(plan) {}

  std::string_view name() const override { return inner_.name(); }
  std::vector<AdapterDescription> ListAdapters() const override;
  absl::StatusOr<std::unique_ptr<DeviceAdapter>> OpenAdapter(std::string_view adapter_name) override;
  uint64_t live_regions() const override { return inner_.live_regions(); }
  FastRegistrationCounts fast_registrations() const override { return inner_.fast_registrations(); }

 private:
  Provider& inner_;
  FaultPlan& plan_;
};

}  // namespace rnicd::provider
