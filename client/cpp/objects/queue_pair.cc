#include "client/cpp/queue_pair.h"

#include "base/status.h"
#include "client/cpp/objects/close_now.h"
#include "client/cpp/session/connection.h"
#include "wire/queue.h"
#include "wire/work_request.h"

namespace rnicd::inline client {
namespace {

v1::CloseQpRequest CloseRequest(QueuePairId id) {
  v1::CloseQpRequest request;
  request.set_qp_id(id.value);
  return request;
}

v1::CreateQpRequest CreateRequest(ProtectionDomainId domain, const CompletionQueue& receive_queue,
                                  const CompletionQueue& initiator_queue, const QueuePairOptions& options) {
  v1::CreateQpRequest request;
  request.set_pd_id(domain.value);
  request.set_receive_cq_id(receive_queue.id().value);
  request.set_initiator_cq_id(initiator_queue.id().value);
  request.set_qp_context(options.qp_context);
  wire::SetLimits({.receive_depth = options.receive_queue_depth,
                   .initiator_depth = options.initiator_queue_depth,
                   .receive_entries = options.max_receive_request_sge,
                   .initiator_entries = options.max_initiator_request_sge,
                   .inline_bytes = options.inline_data_size},
                  &request);
  return request;
}

}  // namespace

// Id of the queue pair in the daemon.
struct QueuePair::Open {
  ~Open() {
    connection->queue_events().Remove(id);
    if (!closed) {
      connection->Release(kCloseQp, CloseRequest(id));
    }
  }

  absl::StatusOr<v1::QueryQpResponse> Query() const {
    v1::QueryQpRequest request;
    request.set_qp_id(id.value);
    return connection->Call(kQueryQp, request);
  }

  std::shared_ptr<Connection> connection;
  QueuePairId id;
  std::string address;
  bool closed = false;
};

absl::StatusOr<QueuePair> QueuePair::Create(const CompletionQueue& receive_queue,
                                            const CompletionQueue& initiator_queue, const QueuePairOptions& options) {
  const std::shared_ptr<Connection> connection = receive_queue.connection();
  if (connection == nullptr) {
    return MakeError(ErrorReason::OBJECT_NOT_FOUND, "receive_cq_id");
  }
  if (initiator_queue.connection() != connection) {
    return MakeError(ErrorReason::OBJECT_NOT_FOUND, "initiator_cq_id");
  }
  RNICD_ASSIGN_OR_RETURN(const ProtectionDomainId domain, connection->ProtectionDomain());
  RNICD_ASSIGN_OR_RETURN(const v1::CreateQpResponse created,
                         connection->Call(kCreateQp, CreateRequest(domain, receive_queue, initiator_queue, options)));
  const auto open = std::make_shared<Open>();
  open->connection = connection;
  open->id = QueuePairId{created.qp_id()};
  if (options.on_disconnected) {
    connection->events().ExpectCallbacks();
    connection->queue_events().Watch(open->id, options.on_disconnected);
  }
  open->address = created.address();
  if (open->address.empty()) {  // An older daemon, without this field.
    RNICD_ASSIGN_OR_RETURN(const v1::QueryQpResponse queried, open->Query());
    open->address = queried.address();
  }
  return QueuePair(open);
}

QueuePairId QueuePair::id() const { return open_ == nullptr ? QueuePairId{} : open_->id; }

const std::string& QueuePair::address() const {
  static const std::string kNone;
  return open_ == nullptr ? kNone : open_->address;
}

absl::StatusOr<QueuePairState> QueuePair::State() const {
  if (open_ == nullptr) {
    return MakeError(ErrorReason::OBJECT_NOT_FOUND);
  }
  RNICD_ASSIGN_OR_RETURN(const v1::QueryQpResponse response, open_->Query());
  return wire::FromWire(response.state());
}

absl::Status QueuePair::Connect(std::string_view peer_address) {
  if (open_ == nullptr) {
    return MakeError(ErrorReason::OBJECT_NOT_FOUND);
  }
  v1::ConnectQpRequest request;
  request.set_qp_id(open_->id.value);
  request.set_peer_address(peer_address.data(), peer_address.size());
  return open_->connection->Call(kConnectQp, request).status();
}

absl::Status QueuePair::Disconnect() {
  if (open_ == nullptr) {
    return MakeError(ErrorReason::OBJECT_NOT_FOUND);
  }
  v1::DisconnectQpRequest request;
  request.set_qp_id(open_->id.value);
  return open_->connection->Call(kDisconnectQp, request).status();
}

absl::Status QueuePair::Flush() {
  if (open_ == nullptr) {
    return MakeError(ErrorReason::OBJECT_NOT_FOUND);
  }
  v1::FlushRequest request;
  request.set_qp_id(open_->id.value);
  return open_->connection->Call(kFlush, request).status();
}

absl::StatusOr<PostOutcome> QueuePair::Post(const WorkChain& chain) {
  if (open_ == nullptr) {
    return MakeError(ErrorReason::OBJECT_NOT_FOUND);
  }
  if (auto outcome = open_->connection->rings().Post(open_->id, chain.requests()); outcome.has_value()) {
    return *std::move(outcome);
  }
  v1::PostRequest request;
  request.set_qp_id(open_->id.value);
  for (size_t index = 0; index < chain.size(); ++index) {
    absl::StatusOr<v1::WorkRequest> wire = wire::ToWire(chain.requests()[index]);
    if (!wire.ok()) {
      return WithFieldPrefix(wire.status(), "requests[" + std::to_string(index) + "].");
    }
    *request.add_requests() = *std::move(wire);
  }
  RNICD_ASSIGN_OR_RETURN(const v1::PostResponse response, open_->connection->Call(kPost, request));
  return wire::FromWire(response);
}

absl::Status QueuePair::Close() { return CloseNow(open_, kCloseQp, CloseRequest); }

}  // namespace rnicd::inline client
