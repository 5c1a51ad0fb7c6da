#pragma once

#include <memory>
#include <string>
#include <utility>

#include "base/ndk/adapter_info.h"
#include "daemon/core/request/closable.h"
#include "daemon/core/tenant/ledger.h"
#include "provider/api/device.h"

namespace rnicd::core {

// The highest NDKPI version this daemon speaks.
inline constexpr NdkVersion kNdkVersion{1, 2};

// Errors: NDK_VERSION_UNSUPPORTED for another major, or a minor above the highest. Source: OPEN_NDK_ADAPTER_HANDLER.
absl::Status CheckNdkVersion(NdkVersion wanted);

// An adapter that a session has opened.
// Lifetime: outlives its protection domains, completion queues and mappings, each of which is a Hold.
class Adapter final : public Closable {
 public:
  Adapter(std::string name, std::unique_ptr<provider::DeviceAdapter> device, Charge charge)
      : Closable("adapter_id"),
        name_(std::move(name)),
        info_(device->info()),
        device_(std::move(device)),
        charge_(std::move(charge)) {}

  const std::string& name() const { return name_; }
  const NdkAdapterInfo& info() const { return info_; }
  // Valid until closed: call with a Hold, or through the session's table.
  provider::DeviceAdapter& device() { return *device_; }

 private:
  void Finalize() override {
    device_.reset();
    charge_.Refund();
  }

  const std::string name_;
  const NdkAdapterInfo info_;
  std::unique_ptr<provider::DeviceAdapter> device_;
  Charge charge_;
};

}  // namespace rnicd::core
