#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "base/system/os.h"
#include "provider/api/device.h"

namespace rnicd::health {

// Checks that one adapter still works for clients: creates a protection domain, registers a page in it that only the
// card can reach, and destroys both. Between two probes it keeps the page and the open adapter, so that a card at rest
// holds no object of the daemon's.
// Lifetime: provider and os outlive it.
// Threads:  one Run or Close at a time; holds_region may be read from any thread.
class AdapterProbe {
 public:
  AdapterProbe(provider::Provider& provider, Os& os, std::string adapter);
  ~AdapterProbe();
  AdapterProbe(const AdapterProbe&) = delete;
  AdapterProbe& operator=(const AdapterProbe&) = delete;

  const std::string& adapter() const { return adapter_; }

  // Takes as long as the card takes. One that was removed is let go first: another card may have its name. After a
  // failure the next run opens the adapter anew, so that a card that recovered is found to work. Errors: those of the
  // provider and, when no page can be allocated, of the system calls.
  absl::Status Run();

  // Lets go of the card until the next run; takes as long as the card takes.
  void Close() { device_.reset(); }

  // True while the card has the probe's registration: from the return of the registration until the return of the
  // deregistration.
  bool holds_region() const { return holds_region_.load(); }

 private:
  absl::Status Try();
  absl::Status TakePage();
  absl::Status RegisterAndDeregister(provider::DeviceProtectionDomain& domain);

  provider::Provider& provider_;
  Os& os_;
  const std::string adapter_;
  // Empty until the first run.
  std::span<std::byte> page_;
  std::unique_ptr<provider::DeviceAdapter> device_;
  std::atomic<bool> holds_region_{false};
};

}  // namespace rnicd::health
