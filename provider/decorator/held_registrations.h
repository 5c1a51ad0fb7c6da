#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "provider/api/device.h"

namespace rnicd::provider {

// Decorator whose registrations wait as long as `held` returns true, as those of a card that is slow or hangs: memory,
// dma-bufs, and memory regions for fast registrations. All other calls are forwarded. For tests and trials.
class HeldProvider final : public Provider {
 public:
  // `held` is called by the threads that register, about once in a millisecond while they wait.
  HeldProvider(std::unique_ptr<Provider> inner, std::function<bool()> held);

  std::string_view name() const override { return inner_->name(); }
  std::vector<AdapterDescription> ListAdapters() const override { return inner_->ListAdapters(); }
  absl::StatusOr<std::unique_ptr<DeviceAdapter>> OpenAdapter(std::string_view adapter_name) override;
  uint64_t live_regions() const override { return inner_->live_regions(); }
  FastRegistrationCounts fast_registrations() const override { return inner_->fast_registrations(); }
  bool registers_in_parallel() const override { return inner_->registers_in_parallel(); }

 private:
  const std::unique_ptr<Provider> inner_;
  const std::function<bool()> held_;
};

}  // namespace rnicd::provider
