#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/app/config/config.h"
#include "daemon/health/serving_check.h"
#include "log/logger.h"

namespace rnicd::app {

// The process as its system runs it: by signals on Linux; on Windows as a service, or in a console.
// Threads: those of RunInHost's argument.
class ProcessHost {
 public:
  enum class Order : uint8_t {
    kStop,
    kReloadPolicy,
    // The daemon has asked for it itself.
    kEnd,
  };
  struct Asked {
    Order order = Order::kStop;
    // What asked, for the log: the signal, or what the console or the service manager sent.
    log::Field by;
  };

  virtual ~ProcessHost() = default;

  // Gives up what the daemon will never need, and opens what it could not open afterwards. While the process has one
  // thread. The answer is for the log. Errors: the step that failed; the process must then end.
  virtual absl::StatusOr<log::Field> Confine(Config& config) = 0;
  // Gives up what only the start needs. Errors: as Confine.
  virtual absl::Status ConfineServing(const Config& config) = 0;
  // Raises the limit of descriptors as far as the system allows. Returns it where it is below `wanted`.
  virtual std::optional<uint64_t> RaiseDescriptorLimit(uint64_t wanted) = 0;
  // Raises the limit of the size of files, which holds for files of memory too, as far as the system allows. Returns it
  // where there is one.
  virtual std::optional<uint64_t> RaiseFileSizeLimit() = 0;
  // Tells the system that the daemon serves.
  virtual void OnServing() = 0;
  // The same for what follows, where the system wants to know it. From any thread; none of them waits.
  virtual void OnReloading() {}
  virtual void OnReloaded() {}
  virtual void OnStopping() {}
  // Called every second, and with `changed` where the verdict is another than before.
  virtual void OnChecked(const health::ServingVerdict& /*verdict*/, bool /*changed*/) {}
  // Waits until the daemon shall stop or read its policy again.
  virtual Asked Wait() = 0;
  // Wait returns kEnd, now or when it is called. From any thread.
  virtual void End() {}
};

// Calls `run` once, as its system wants it, and returns the exit status of the process, which `run` gives. To be called
// once, while the process has one thread.
int RunInHost(const std::function<int(ProcessHost&)>& run);

}  // namespace rnicd::app
