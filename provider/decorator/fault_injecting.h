#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "provider/api/device.h"

namespace rnicd::provider {

// Which device calls fail next. Shared by the test that plans and the provider that fails. Threads: safe.
class FaultPlan {
 public:
  // The next `count` calls fail with `failure`.
  void FailRegister(absl::Status failure, uint64_t count);
  void FailDeregister(absl::Status failure, uint64_t count);
  void FailCreateProtectionDomain(absl::Status failure, uint64_t count);

  // What the device calls ask: the failure to report, or ok.
  absl::Status TakeRegister() { return Take(register_); }
  absl::Status TakeDeregister() { return Take(deregister_); }
  absl::Status TakeCreateProtectionDomain() { return Take(create_protection_domain_); }

 private:
  struct Fault {
    absl::Status failure;
    uint64_t remaining = 0;
  };
  void Plan(Fault& fault, absl::Status failure, uint64_t count);
  absl::Status Take(Fault& fault);

  Mutex mutex_;
  Fault register_;
  Fault deregister_;
  Fault create_protection_domain_;
};

// A provider that is another provider, except for the planned failures. For tests of what core does then.
class FaultInjectingProvider final : public Provider {
 public:
  // Both outlive this provider.
  FaultInjectingProvider(Provider& inner, FaultPlan& plan) : inner_(inner), plan_(plan) {}

  std::string_view name() const override { return inner_.name(); }
  std::vector<AdapterDescription> ListAdapters() const override { return inner_.ListAdapters(); }
  absl::StatusOr<std::unique_ptr<DeviceAdapter>> OpenAdapter(std::string_view adapter_name) override;
  uint64_t live_regions() const override { return inner_.live_regions(); }

 private:
  Provider& inner_;
  FaultPlan& plan_;
};

}  // namespace rnicd::provider
