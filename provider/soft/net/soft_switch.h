#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/secrets/random.h"
#include "provider/api/connection.h"
#include "provider/soft/net/soft_message.h"
#include "provider/soft/net/soft_worker.h"

namespace rnicd::provider {

class SoftConnector;

// Carries the messages between the connectors of a node, and has its listeners by address and its connectors by number.
// Messages arrive in the order in which they were sent, one at a time, on the worker.
// Lifetime: outlives its listeners and connectors, and the worker's last job.
// Threads: safe; no lock is held during a delivery.
class SoftSwitch {
 public:
  // Both outlive the last call.
  SoftSwitch(RandomSource& random, SoftWorker& worker) : random_(random), worker_(worker) {}

  // A card of this node has the address.
  void AddHost(const IpAddress& host);
  // Errors: ADDRESS_IN_USE.
  absl::StatusOr<std::unique_ptr<DeviceListener>> Listen(const NetworkAddress& address,
                                                         std::weak_ptr<RequestListener> listener);
  void RemoveListener(const NetworkAddress& address);
  // A number for an active end. Neither it nor that of its peer is in use.
  uint64_t AddConnector(const std::weak_ptr<SoftConnector>& connector);
  void RemoveConnector(uint64_t number);
  // Only leaves the message to the worker, so it may be called under a lock.
  void Send(SoftMessage message);

 private:
  void Deliver(const SoftMessage& message);
  // False when no card of this node has the address.
  bool HasHost(const IpAddress& host) const;
  // False when none has an address of its family, so that there is no route.
  bool HasNetwork(const IpAddress& host) const;
  void TakeRequest(const SoftMessage& request);
  // Null when nobody listens.
  std::shared_ptr<RequestListener> FindListener(const NetworkAddress& address) const;

  RandomSource& random_;
  SoftWorker& worker_;
  mutable Mutex mutex_;
  std::set<IpAddress> hosts_ RNICD_GUARDED_BY(mutex_);
  std::map<NetworkAddress, std::weak_ptr<RequestListener>> listeners_ RNICD_GUARDED_BY(mutex_);
  std::map<uint64_t, std::weak_ptr<SoftConnector>> connectors_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::provider
