#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/strong_id.h"
#include "daemon/core/connection/connection_arguments.h"
#include "daemon/core/connection/connector_record.h"
#include "daemon/core/queue/queue_pair.h"
#include "daemon/core/region/adapter.h"
#include "daemon/core/request/address_book.h"
#include "daemon/core/request/closable.h"
#include "daemon/core/request/event_queue.h"
#include "daemon/core/request/lease.h"
#include "daemon/core/request/maybe_pending.h"
#include "daemon/core/request/session_requests.h"
#include "daemon/core/tenant/ledger.h"
#include "provider/api/connection.h"

namespace rnicd::core {

// An NDK connector: one end of a connection, from the request to the end. It has the states and the timeouts, and calls
// the card in NDK's order.
// Lifetime: holds its adapter, and its listener or shared endpoint; its queue pair from Connect or Accept on. A request
//           that pends holds the connector.
// Threads:  safe. The card is called under `calls_`; its events are handled on a worker, with the session held, and may
//           overtake each other.
// Source:   NDK_FN_CREATE_CONNECTOR, NDK_FN_CONNECT, NDK_FN_ACCEPT, NDK_FN_COMPLETE_CONNECT, NDK_FN_DISCONNECT.
class Connector final : public Closable, public EventSource {
 public:
  struct Options {
    Kept<Adapter> adapter;
    std::shared_ptr<Charge> charge;
    // The listener of a passive connector, kept until the connector is closed.
    Closable::Hold listener;
    AddressBook::Hold local;
  };
  // Source of a connection.
  struct Source {
    NetworkAddress address;
    // What ends with the attempt: the address's hold, or the shared endpoint's entry for this peer.
    AddressBook::Hold hold;
    // The shared endpoint, if there is one.
    Closable::Hold endpoint;
    bool is_shared = false;
  };

  // For the active side. `requests` is its session's.
  static std::shared_ptr<Connector> Create(Options options, SessionRequests& requests);
  // For the request of a peer. `event` is announced by Announce.
  static std::shared_ptr<Connector> CreateFor(provider::ConnectionRequest request, const ConnectRequested& event,
                                              Options options, SessionRequests& requests);
  // Must be called before anything is reported.
  void Publish(ConnectorId id);
  // Hears of the attempt that begins.
  std::shared_ptr<provider::ConnectorListener> NewListener();
  // Puts the request on the event stream.
  void Announce() { Signal(); }

  // Each ends through `done`, unless it is refused. `limits`: capped at the adapter's. Errors:
  // connection_service.proto.
  absl::Status Connect(const ConnectArguments& arguments, Kept<QueuePair> pair, Source source, Done<> done);
  absl::Status CompleteConnect(uint64_t disconnect_context, Done<> done);
  absl::Status Accept(const AcceptArguments& arguments, Kept<QueuePair> pair, Done<> done);
  absl::Status Disconnect(Done<> done);
  absl::Status Reject(std::string_view private_data);
  absl::StatusOr<ConnectionData> Data() const;
  absl::StatusOr<ConnectionAddresses> Addresses() const;
  // Ends the request that pends with this status, if one does.
  void Cancel(const absl::Status& status);

  Taken TakeEvent() override;
  Adapter& adapter() const { return *adapter_; }
  const std::shared_ptr<Charge>& charge() const { return charge_; }
  bool undecided() const;
  // Empty while it is idle.
  std::optional<ConnectionView> View() const;

 private:
  class Events;
  // A request that has ended, to be reported without a lock.
  struct Ended {
    Done<> done;
    Closable::Hold hold;
    void Report(const absl::Status& status);
  };

  Connector(Options options, SessionRequests& requests);

  // Events of the card and the clock. `attempt` numbers the attempts: what belongs to an earlier one is dropped.
  void Later(uint64_t attempt, std::function<void(Connector&)> handle);
  void OnAccepted(const provider::ConnectionOffer& offer);
  void OnEstablished();
  void OnFailed(const absl::Status& status, std::string_view private_data);
  void OnPeerLost(bool has_disconnected);

  absl::Status CheckState(ConnectorState wanted) const RNICD_REQUIRES(mutex_);
  void SetState(ConnectorState state) RNICD_REQUIRES(mutex_);
  absl::Status TakePair(const Kept<QueuePair>& pair) RNICD_EXCLUDES(mutex_);
  void OnTimeout(ConnectorState waiting);
  absl::Status RefuseConnect(const absl::Status& status) RNICD_EXCLUDES(mutex_);
  // Begins a request that ends at the latest with the timeout.
  absl::Status BeginRequest(ConnectorState next, Done<> done) RNICD_REQUIRES(mutex_);
  Ended TakeRequest() RNICD_REQUIRES(mutex_);
  // Ends the request that pends: a connector that was connecting is idle again, any other has ended.
  void Fail(const absl::Status& status) RNICD_EXCLUDES(mutex_);
  // What an attempt has; the caller lets go of it without a lock.
  ConnectorAttempt EndAttempt() RNICD_REQUIRES(mutex_);
  void EndDisconnect();
  // Queues the connector's event, unless it is queued.
  void Signal() RNICD_EXCLUDES(mutex_);
  void Finalize() override;
  void ReleaseParents() override;

  Kept<Adapter> adapter_;
  Closable::Hold listener_;
  const AddressBook::Hold local_;
  const std::shared_ptr<Charge> charge_;
  const std::weak_ptr<Lease> lease_;
  SessionRequests& requests_;
  Mutex calls_;
  mutable Mutex mutex_;
  ConnectorRecord record_ RNICD_GUARDED_BY(mutex_);
  ConnectorAttempt attempt_ RNICD_GUARDED_BY(mutex_);
  ConnectorEvents events_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::core
