#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/ndk/network_address.h"
#include "base/strong_id.h"
#include "daemon/core/region/adapter.h"
#include "daemon/core/request/address_book.h"
#include "daemon/core/request/closable.h"
#include "daemon/core/request/lease.h"
#include "daemon/core/tenant/ledger.h"
#include "provider/api/connection.h"

namespace rnicd::core {

// A listener as shown to an operator.
struct ListenerView {
  ListenerId listener;
  std::string adapter_name;
  NetworkAddress local;
  std::string name;
  bool paused = false;
  uint64_t reported = 0;
  uint64_t refused = 0;
};

// An NDK listener.
// Lifetime: holds its adapter; held by the connectors of its requests, so that its address stays taken.
// Threads:  safe.
// Source:   NDK_FN_CREATE_LISTENER, NDK_FN_LISTEN, NDK_FN_CONTROL_CONNECT_EVENTS.
class Listener final : public Closable, public provider::RequestListener {
 public:
  // Makes a connector of a request, or returns null: the request is rejected.
  using Take = std::function<std::shared_ptr<provider::ConnectorListener>(Listener&, provider::ConnectionRequest)>;
  // `take` may be called while `lease` exists.
  Listener(Kept<Adapter> adapter, uint64_t context, std::shared_ptr<Charge> charge, std::weak_ptr<Lease> lease,
           Take take)
      : Closable("listener_id"),
        adapter_(std::move(adapter)),
        context_(context),
        charge_(std::move(charge)),
        lease_(std::move(lease)),
        take_(std::move(take)) {}

  void Publish(ListenerId id) { id_ = id; }
  // `name` is empty, and its hold null, for a listener without one. Errors: LISTENER_STATE; those of
  // DeviceAdapter::Listen.
  absl::Status Listen(AddressBook::Claim claim, std::string name, AddressBook::Hold name_hold);
  // Errors: LISTENER_STATE.
  absl::Status SetPaused(bool paused);
  absl::StatusOr<NetworkAddress> LocalAddress() const;
  // From now on requests are refused; the address stays taken.
  void Stop();

  std::shared_ptr<provider::ConnectorListener> OnRequest(provider::ConnectionRequest request) override;
  ListenerId id() const { return id_; }
  uint64_t context() const { return context_; }
  const std::shared_ptr<Adapter>& adapter() const { return adapter_.shared(); }
  const std::shared_ptr<Charge>& charge() const { return charge_; }
  // Empty before Listen.
  std::optional<ListenerView> View() const;

 private:
  // Until the listener is closed.
  struct Listening {
    AddressBook::Claim claim;
    std::string name;
    AddressBook::Hold name_hold;
    std::unique_ptr<provider::DeviceListener> device;
    bool paused = false;
    uint64_t reported = 0;
    uint64_t refused = 0;
  };

  void Finalize() override;
  void ReleaseParents() override { adapter_.Release(); }

  Kept<Adapter> adapter_;
  const uint64_t context_;
  const std::shared_ptr<Charge> charge_;
  const std::weak_ptr<Lease> lease_;
  const Take take_;
  ListenerId id_;
  mutable Mutex mutex_;
  bool stopped_ RNICD_GUARDED_BY(mutex_) = false;
  std::optional<Listening> listening_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::core
