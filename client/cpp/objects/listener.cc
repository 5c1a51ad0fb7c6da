#include "client/cpp/listener.h"

#include <optional>

#include "base/status.h"
#include "client/cpp/client.h"
#include "client/cpp/objects/close_now.h"
#include "client/cpp/objects/convert.h"
#include "client/cpp/session/connection.h"

namespace rnicd::inline client {
namespace {

// Pending is fine: the daemon closes the listener when its last connector is closed, and nothing waits for that event.
v1::CloseListenerRequest CloseListenerMessage(ListenerId id) {
  v1::CloseListenerRequest request;
  request.set_listener_id(id.value);
  request.set_allow_pending(true);
  return request;
}

}  // namespace

// Id of the listener in the daemon.
struct Listener::Open {
  ~Open() {
    if (!closed) {
      connection->Release(kCloseListener, CloseListenerMessage(id));
    }
    // In a child made by fork its lock is in any state.
    if (connection->CheckProcess().ok()) {
      for (const ConnectorId request : connection->connection_events().Remove(id)) {
        v1::CloseConnectorRequest close;
        close.set_connector_id(request.value);
        connection->Release(kCloseConnector, close);
      }
    }
  }

  std::shared_ptr<Connection> connection;
  ListenerId id;
  bool closed = false;
  NetworkAddress local;
  std::string full_name;
};

absl::StatusOr<Listener> Listener::Listen(const Client& client, const ListenOptions& options) {
  const std::shared_ptr<Connection>& connection = client.connection();
  if (connection == nullptr) {
    return MakeError(ErrorReason::SESSION_REQUIRED);
  }
  RNICD_ASSIGN_OR_RETURN(const AdapterId adapter, connection->Adapter());
  v1::CreateListenerRequest create;
  create.set_adapter_id(adapter.value);
  RNICD_ASSIGN_OR_RETURN(const v1::CreateListenerResponse created, connection->Call(kCreateListener, create));
  const auto open = std::make_shared<Open>();
  open->connection = connection;
  open->id = ListenerId{created.listener_id()};
  // Before Listen: no request is lost.
  connection->connection_events().Watch(open->id);
  v1::ListenRequest listen;
  listen.set_listener_id(open->id.value);
  SetLocal(options.local, &listen);
  listen.set_name(options.name);
  RNICD_ASSIGN_OR_RETURN(const v1::ListenResponse listening, connection->Call(kListen, listen));
  RNICD_ASSIGN_OR_RETURN(open->local, AddressFromWire(listening.local()));
  open->full_name = listening.full_name();
  return Listener(open);
}

ListenerId Listener::id() const { return open_ == nullptr ? ListenerId{} : open_->id; }

NetworkAddress Listener::local() const { return open_ == nullptr ? NetworkAddress{} : open_->local; }

const std::string& Listener::full_name() const {
  static const std::string kNoName;
  return open_ == nullptr ? kNoName : open_->full_name;
}

absl::StatusOr<Connector> Listener::NextRequest(std::chrono::milliseconds wait_max) {
  if (open_ == nullptr) {
    return MakeError(ErrorReason::OBJECT_NOT_FOUND);
  }
  Connection& connection = *open_->connection;
  RNICD_RETURN_IF_ERROR(connection.CheckProcess());
  std::optional<absl::StatusOr<ConnectorId>> request;
  connection.events().Await(DeadlineAfter(wait_max), [&] {
    request = connection.connection_events().TakeRequest(open_->id);
    return request.has_value();
  });
  if (!request.has_value()) {
    return MakeError(ErrorReason::CONNECTION_TIMED_OUT);
  }
  RNICD_ASSIGN_OR_RETURN(const ConnectorId id, *request);
  return Connector::Adopt(open_->connection, id);
}

absl::Status Listener::Control(bool pause) {
  if (open_ == nullptr) {
    return MakeError(ErrorReason::OBJECT_NOT_FOUND);
  }
  v1::ControlConnectEventsRequest request;
  request.set_listener_id(open_->id.value);
  request.set_pause(pause);
  return open_->connection->Call(kControlConnectEvents, request).status();
}

absl::Status Listener::Pause() { return Control(/*pause=*/true); }

absl::Status Listener::Resume() { return Control(/*pause=*/false); }

absl::Status Listener::Close() { return CloseNow(open_, kCloseListener, CloseListenerMessage); }

}  // namespace rnicd::inline client
