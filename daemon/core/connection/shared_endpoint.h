#pragma once

#include <memory>
#include <set>
#include <utility>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/ndk/network_address.h"
#include "base/status.h"
#include "daemon/core/region/adapter.h"
#include "daemon/core/request/address_book.h"
#include "daemon/core/request/closable.h"
#include "daemon/core/tenant/ledger.h"

namespace rnicd::core {

// An NDK shared endpoint: a source address for connections to several peers.
// Lifetime: holds its adapter; held by its connectors.
// Threads:  safe.
// Source:   NDK_FN_CREATE_SHARED_ENDPOINT, NDK_FN_CONNECT_WITH_SHARED_ENDPOINT.
class SharedEndpoint final : public Closable {
 public:
  SharedEndpoint(Kept<Adapter> adapter, AddressBook::Claim claim, std::shared_ptr<Charge> charge)
      : Closable("shared_endpoint_id"),
        adapter_(std::move(adapter)),
        claim_(std::move(claim)),
        charge_(std::move(charge)) {}

  const NetworkAddress& local() const { return claim_.address; }
  const Adapter& adapter() const { return *adapter_; }
  const std::shared_ptr<Charge>& charge() const { return charge_; }
  // Keeps the peer from being connected to twice. Errors: CONNECTION_EXISTS.
  absl::StatusOr<AddressBook::Hold> AddPeer(const NetworkAddress& peer) {
    MutexLock lock(mutex_);
    if (!peers_.insert(peer).second) {
      return MakeError(ErrorReason::CONNECTION_EXISTS, "peer");
    }
    return AddressBook::Hold(this, [self = shared_from_this(), this, peer](const void*) {
      MutexLock removing(mutex_);
      peers_.erase(peer);
    });
  }

 private:
  void Finalize() override { claim_.hold = nullptr; }
  void ReleaseParents() override { adapter_.Release(); }

  Kept<Adapter> adapter_;
  AddressBook::Claim claim_;
  const std::shared_ptr<Charge> charge_;
  Mutex mutex_;
  std::set<NetworkAddress> peers_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::core
