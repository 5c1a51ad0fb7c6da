#include "client/cpp/queue_pair.h"

#include <array>
#include <atomic>
#include <span>

#include "base/status.h"
#include "client/cpp/objects/close_now.h"
#include "client/cpp/objects/request_counts.h"
#include "client/cpp/session/connection.h"
#include "client/cpp/transport_failure.h"
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
  request.set_flush_with_peer(options.flush_with_peer);
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
  using Queues = std::array<std::shared_ptr<PairsOfQueue>, 2>;

  ~Open() {
    // In a child made by fork locks, and what they guard, are in any state.
    if (connection->CheckProcess().ok()) {
      connection->queue_events().Remove(id);
      connection->lost_posts().Remove(id);
      for (const std::shared_ptr<PairsOfQueue>& queue : queues) {
        queue->Remove(id);
      }
      if (!closed) {
        (void)AwaitPosts(connection->options().release_deadline);
      }
    }
    if (!closed) {
      connection->Release(kCloseQp, CloseRequest(id));
    }
  }

  absl::StatusOr<v1::QueryQpResponse> Query() const {
    v1::QueryQpRequest request;
    request.set_qp_id(id.value);
    return connection->Call(kQueryQp, request);
  }

  // Before a call, which must not overtake what was posted without an outcome. Errors: it may never be executed.
  absl::Status AwaitPosts() { return AwaitPosts(connection->options().call_deadline); }
  absl::Status AwaitPosts(std::chrono::milliseconds wait_max) {
    return posted_through_ring ? connection->rings().AwaitPosts(wait_max) : absl::OkStatus();
  }

  absl::StatusOr<PostOutcome> PostByCall(std::span<const WorkRequest> requests, bool completes_refusals);
  // Completes requests that a ring has lost; `queues` as below.
  static void ReportLost(std::span<Completion> requests, RequestCounts& counts, const Queues& queues,
                         uint64_t qp_context);

  std::shared_ptr<Connection> connection;
  QueuePairId id;
  std::string address;
  bool closed = false;
  // The daemon serves posts without an outcome, and numbers completions.
  bool without_outcome = false;
  // Something was posted without an outcome through the ring.
  std::atomic<bool> posted_through_ring = false;
  std::shared_ptr<RequestCounts> counts;
  // Those that count this queue pair's completions.
  Queues queues;
};

void QueuePair::Open::ReportLost(std::span<Completion> requests, RequestCounts& counts, const Queues& queues,
                                 uint64_t qp_context) {
  std::array<std::vector<Completion>, 2> of_queue;
  for (Completion& request : requests) {
    request.qp_context = qp_context;
    of_queue[request.type == OperationType::kReceive ? 0 : 1].push_back(request);
  }
  for (size_t index = 0; index < queues.size(); ++index) {
    counts.NumberLost(of_queue[index]);
    queues[index]->AddLost(of_queue[index]);
  }
}

absl::StatusOr<PostOutcome> QueuePair::Open::PostByCall(std::span<const WorkRequest> requests,
                                                        bool completes_refusals) {
  v1::PostRequest request;
  request.set_qp_id(id.value);
  request.set_without_outcome(completes_refusals);
  for (size_t index = 0; index < requests.size(); ++index) {
    absl::StatusOr<v1::WorkRequest> wire = wire::ToWire(requests[index]);
    if (!wire.ok()) {
      return WithFieldPrefix(wire.status(), "requests[" + std::to_string(index) + "].");
    }
    *request.add_requests() = *std::move(wire);
  }
  if (absl::Status executed = AwaitPosts(); !executed.ok()) {
    // The ring has ended, perhaps with posts in it that cannot even be read any more.
    (void)connection->DeliverLostPosts();
    v1::FlushRequest flush;
    flush.set_qp_id(id.value);
    (void)connection->Call(kFlush, flush);
    return executed;
  }
  RNICD_ASSIGN_OR_RETURN(const v1::PostResponse response, connection->Call(kPost, request));
  return wire::FromWire(response);
}

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
  open->without_outcome = created.without_outcome();
  open->counts = std::make_shared<RequestCounts>(
      OutstandingRequests{.initiator = options.initiator_queue_depth, .receive = options.receive_queue_depth});
  open->queues = {receive_queue.pairs(), initiator_queue.pairs()};
  for (const std::shared_ptr<PairsOfQueue>& queue : open->queues) {
    queue->Insert(open->id, open->counts);
  }
  connection->lost_posts().Watch(
      open->id, [counts = open->counts, queues = open->queues, qp_context = options.qp_context](
                    std::span<Completion> requests) { Open::ReportLost(requests, *counts, queues, qp_context); });
  if (options.flush_with_peer && !open->without_outcome) {
    return TransportFailure(absl::StatusCode::kUnimplemented, "the daemon is older than flush_with_peer");
  }
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
  (void)open_->AwaitPosts();
  return open_->connection->Call(kDisconnectQp, request).status();
}

absl::Status QueuePair::Flush() {
  if (open_ == nullptr) {
    return MakeError(ErrorReason::OBJECT_NOT_FOUND);
  }
  v1::FlushRequest request;
  request.set_qp_id(open_->id.value);
  (void)open_->AwaitPosts();
  return open_->connection->Call(kFlush, request).status();
}

absl::StatusOr<PostOutcome> QueuePair::Post(std::span<const WorkRequest> requests) {
  if (open_ == nullptr) {
    return MakeError(ErrorReason::OBJECT_NOT_FOUND);
  }
  RequestCounts& counts = *open_->counts;
  counts.Add(RequestCounts::In(requests));
  auto by_ring = open_->connection->rings().Post(open_->id, requests);
  absl::StatusOr<PostOutcome> outcome =
      by_ring.has_value() ? *std::move(by_ring) : open_->PostByCall(requests, /*completes_refusals=*/false);
  counts.Remove(RequestCounts::In(requests.subspan(outcome.ok() ? outcome->posted : 0)));
  return outcome;
}

absl::Status QueuePair::PostWithoutOutcome(std::span<const WorkRequest> requests) {
  if (open_ == nullptr) {
    return MakeError(ErrorReason::OBJECT_NOT_FOUND);
  }
  if (!open_->without_outcome) {
    RNICD_ASSIGN_OR_RETURN(const PostOutcome outcome, Post(requests));
    return outcome.failure;
  }
  const OutstandingRequests counted = RequestCounts::In(requests);
  if (!open_->counts->AddIfRoom(counted)) {
    return MakeError(ErrorReason::QUEUE_FULL);
  }
  auto posted = open_->connection->rings().PostWithoutOutcome(open_->id, requests);
  if (posted.has_value()) {
    open_->posted_through_ring = true;
  } else {
    posted = open_->PostByCall(requests, /*completes_refusals=*/true).status();
  }
  if (!posted->ok()) {
    open_->counts->Remove(counted);
  }
  return *posted;
}

OutstandingRequests QueuePair::Outstanding() const {
  return open_ != nullptr && open_->without_outcome ? open_->counts->outstanding() : OutstandingRequests();
}

std::shared_ptr<Connection> QueuePair::connection() const { return open_ == nullptr ? nullptr : open_->connection; }

absl::Status QueuePair::Close() {
  if (open_ != nullptr) {
    (void)open_->AwaitPosts();
  }
  return CloseNow(open_, kCloseQp, CloseRequest);
}

}  // namespace rnicd::inline client
