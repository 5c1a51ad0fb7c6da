#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/strong_id.h"
#include "daemon/core/connection/connection_arguments.h"
#include "daemon/core/connection/connector.h"
#include "daemon/core/connection/listener.h"
#include "daemon/core/connection/session_endpoints.h"
#include "daemon/core/queue/session_pairs.h"
#include "daemon/core/region/session_adapters.h"
#include "daemon/core/request/session_objects.h"

namespace rnicd::core {

// The connectors of a session, and the wall: whom it may reach, and whose requests it hears of.
class SessionConnectors final : public SessionObjects<ConnectorId, Connector> {
 public:
  // The tables with what a connector names; all outlive the connectors.
  struct Named {
    const SessionAdapters::Table& adapters;
    const SessionEndpoints::Table& endpoints;
    const SessionPairs::Table& pairs;
  };
  SessionConnectors(SessionRequests& requests, const Named& named) : SessionObjects(requests), named_(named) {}

  absl::StatusOr<ConnectorId> Create(AdapterId adapter);
  MaybePending<> Connect(const ConnectArguments& arguments, PendingChoice choice, const Done<>& done);
  MaybePending<> CompleteConnect(ConnectorId id, uint64_t disconnect_context, PendingChoice choice, const Done<>& done);
  MaybePending<> Accept(const AcceptArguments& arguments, PendingChoice choice, const Done<>& done);
  MaybePending<> Disconnect(ConnectorId id, PendingChoice choice, const Done<>& done);
  absl::Status Reject(ConnectorId id, std::string_view private_data);
  absl::StatusOr<ConnectionData> Data(ConnectorId id) const;
  absl::StatusOr<ConnectionAddresses> Addresses(ConnectorId id) const;
  MaybePending<> Close(ConnectorId id, PendingChoice choice, const Done<>& done);

  // Takes the request of a peer that may reach this session; null rejects it.
  std::shared_ptr<provider::ConnectorListener> TakeRequest(Listener& listener, provider::ConnectionRequest request);

 private:
  friend class Session;
  // A call on a connector, which ends through its `done`.
  using Call = std::function<absl::Status(Connector&, Done<>)>;
  MaybePending<> Pend(ConnectorId id, RequestKind kind, PendingChoice choice, const Done<>& done, const Call& call);
  // Where Connect goes. Errors: NAME_NOT_FOUND, ADDRESS_INVALID, ADDRESS_NOT_PERMITTED, FIELD_OUT_OF_RANGE.
  absl::StatusOr<NetworkAddress> PeerOf(const ConnectArguments& arguments, Adapter& adapter) const;
  absl::Status ConnectFrom(Connector& connector, const ConnectArguments& arguments, const NetworkAddress& peer,
                           const Done<>& done);
  absl::StatusOr<Kept<QueuePair>> KeepPair(QueuePairId id) const;
  absl::StatusOr<std::shared_ptr<Connector>> MakeFor(Listener& listener, provider::ConnectionRequest& request);

  const Named named_;
};

}  // namespace rnicd::core
