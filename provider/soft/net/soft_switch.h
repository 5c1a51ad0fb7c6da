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
#include "provider/soft/net/soft_network.h"
#include "provider/soft/net/soft_worker.h"

namespace rnicd::provider {

class SoftConnector;

// Carries the messages between the connectors of a node, and to those of other daemons; has the node's listeners by
// address and its connectors by number.
// Messages arrive in the order in which they were sent, one at a time, on the worker.
// Lifetime: outlives its listeners and connectors, and the worker's last job.
// Threads: safe; no lock is held during a delivery.
class SoftSwitch {
 public:
  // All outlive the last call. `network`: null where there are no other daemons.
  SoftSwitch(RandomSource& random, SoftWorker& worker, SoftNetwork* network)
      : random_(random), worker_(worker), network_(network) {}

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
  // The link by which a card is reached; 0: it is of this daemon, or of none.
  uint64_t LinkTo(const IpAddress& host) const;

  // On the worker. What has arrived.
  void Deliver(const SoftMessage& message);
  // Ends the connections over that link.
  void LoseLink(uint64_t link);

 private:
  // True where the request has a number of its own, and comes by the link of the address that it says.
  bool IsFromPeer(const SoftMessage& message) const;
  // False when no card of this node has the address.
  bool HasHost(const IpAddress& host) const;
  void TakeRequest(const SoftMessage& request);
  // Null when nobody listens.
  std::shared_ptr<RequestListener> FindListener(const NetworkAddress& address) const;

  RandomSource& random_;
  SoftWorker& worker_;
  SoftNetwork* const network_;
  mutable Mutex mutex_;
  std::set<IpAddress> hosts_ RNICD_GUARDED_BY(mutex_);
  std::map<NetworkAddress, std::weak_ptr<RequestListener>> listeners_ RNICD_GUARDED_BY(mutex_);
  std::map<uint64_t, std::weak_ptr<SoftConnector>> connectors_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::provider
