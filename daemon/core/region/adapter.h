#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/ndk/adapter_info.h"
#include "base/strong_id.h"
#include "daemon/core/request/closable.h"
#include "daemon/core/request/event_queue.h"
#include "daemon/core/tenant/ledger.h"
#include "provider/api/device.h"

namespace rnicd::core {

// The highest NDKPI version this daemon speaks.
inline constexpr NdkVersion kNdkVersion{1, 2};

// Errors: NDK_VERSION_UNSUPPORTED for another major, or a minor above the highest. Source: OPEN_NDK_ADAPTER_HANDLER.
absl::Status CheckNdkVersion(NdkVersion wanted);

// An adapter that a session has opened.
// Lifetime: outlives its protection domains, completion queues and mappings, each of which is a Hold.
// Threads:  safe.
class Adapter final : public Closable, public EventSource {
 public:
  Adapter(std::string name, std::unique_ptr<provider::DeviceAdapter> device, Charge charge)
      : Closable("adapter_id"),
        name_(std::move(name)),
        info_(device->info()),
        device_(std::move(device)),
        charge_(std::move(charge)) {}

  // Keeps it open for a child. Errors: OBJECT_CLOSING, DEVICE_REMOVED.
  static absl::StatusOr<Kept<Adapter>> Keep(std::shared_ptr<Adapter> adapter);

  const std::string& name() const { return name_; }
  const NdkAdapterInfo& info() const { return info_; }
  // Valid until closed: call with a Hold, or through the session's table.
  provider::DeviceAdapter& device() { return *device_; }

  // False once it is closed.
  bool removed() const;
  // True when nothing holds it any more.
  bool closed() const;
  // Puts AdapterRemoved on the event stream. False if it was announced before. `events` outlives the adapter.
  bool AnnounceRemoval(AdapterId id, EventQueue& events);
  Taken TakeEvent() override;

 private:
  void Finalize() override;

  const std::string name_;
  const NdkAdapterInfo info_;
  mutable Mutex mutex_;
  // Written under the lock; a Hold also lets one read it.
  std::unique_ptr<provider::DeviceAdapter> device_;
  AdapterId id_ RNICD_GUARDED_BY(mutex_);
  // Where the removal was announced; null before.
  EventQueue* events_ RNICD_GUARDED_BY(mutex_) = nullptr;
  Charge charge_;
};

}  // namespace rnicd::core
