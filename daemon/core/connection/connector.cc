#include "daemon/core/connection/connector.h"

#include <algorithm>
#include <utility>

#include "base/status.h"

namespace rnicd::core {
namespace {

// Whether a connection is being made, or made.
bool IsActive(ConnectorState state) { return state != ConnectorState::kIdle && state != ConnectorState::kEnded; }

ReadLimits Capped(const ReadLimits& limits, const NdkAdapterInfo& info) {
  return {.inbound = std::min(limits.inbound, info.max_inbound_read_limit),
          .outbound = std::min(limits.outbound, info.max_outbound_read_limit)};
}

// What both sides allow: `peer` is in the peer's view.
ReadLimits Effective(const ReadLimits& own, const provider::ConnectionOffer& peer) {
  return {.inbound = std::min(own.inbound, peer.outbound_read_limit),
          .outbound = std::min(own.outbound, peer.inbound_read_limit)};
}

absl::Status CheckData(std::string_view data, uint32_t most) {
  return data.size() > most ? MakeError(ErrorReason::PRIVATE_DATA_TOO_LONG, "private_data") : absl::OkStatus();
}

provider::ConnectionOffer OfferOf(const ReadLimits& limits, std::string private_data = {}) {
  return {.inbound_read_limit = limits.inbound,
          .outbound_read_limit = limits.outbound,
          .private_data = std::move(private_data)};
}

}  // namespace

void Connector::Ended::Report(const absl::Status& status) {
  if (done != nullptr) {
    std::exchange(done, nullptr)(status);
  }
  hold.Release();
}

std::shared_ptr<Connector> Connector::Create(Options options, SessionRequests& requests) {
  return std::shared_ptr<Connector>(new Connector(std::move(options), requests));
}

Connector::Connector(Options options, SessionRequests& requests)
    : Closable("connector_id"),
      adapter_(std::move(options.adapter)),
      listener_(std::move(options.listener)),
      local_(std::move(options.local)),
      charge_(std::move(options.charge)),
      lease_(requests.lease().weak_from_this()),
      requests_(requests) {}

std::shared_ptr<Connector> Connector::CreateFor(provider::ConnectionRequest request, const ConnectRequested& event,
                                                Options options, SessionRequests& requests) {
  std::shared_ptr<Connector> connector = Create(std::move(options), requests);
  const NdkAdapterInfo& info = connector->adapter_->info();
  MutexLock lock(connector->mutex_);
  ConnectorRecord& record = connector->record_;
  record.passive = true;
  record.addresses = {.local = request.local, .peer = request.peer};
  record.limits = {.inbound = info.max_inbound_read_limit, .outbound = info.max_outbound_read_limit};
  record.received = std::move(request.offer);
  connector->SetState(ConnectorState::kRequested);
  connector->attempt_.device = std::move(request.connector);
  connector->events_.request = event;
  return connector;
}

void Connector::Publish(ConnectorId id) {
  MutexLock lock(mutex_);
  record_.id = id;
  if (events_.request.has_value()) {
    events_.request->connector = id;
  }
}

absl::Status Connector::CheckState(ConnectorState wanted) const {
  if (record_.state == wanted) {
    return absl::OkStatus();
  }
  if (!record_.failure.ok()) {
    return record_.failure;
  }
  const bool connects = wanted == ConnectorState::kIdle && IsActive(record_.state) && !record_.passive;
  return MakeError(connects ? ErrorReason::CONNECTION_ACTIVE : ErrorReason::CONNECTOR_STATE, "connector_id");
}

void Connector::SetState(ConnectorState state) {
  record_.state = state;
  record_.since = requests_.node().clock.Now();
}

absl::Status Connector::BeginRequest(ConnectorState next, Done<> done) {
  RNICD_ASSIGN_OR_RETURN(attempt_.hold, Acquire());
  SetState(next);
  attempt_.done = std::move(done);
  const auto job = [weak = weak_from_this(), attempt = record_.attempt, next] {
    if (const std::shared_ptr<Closable> self = weak.lock(); self != nullptr) {
      static_cast<Connector&>(*self).Later(attempt, [next](Connector& connector) { connector.OnTimeout(next); });
    }
  };
  attempt_.alarm = requests_.node().alarms.Set(requests_.node().limits.connection_timeout, job);
  return absl::OkStatus();
}

Connector::Ended Connector::TakeRequest() {
  if (attempt_.done != nullptr) {
    requests_.node().alarms.Cancel(attempt_.alarm);
  }
  return {.done = std::exchange(attempt_.done, nullptr), .hold = std::move(attempt_.hold)};
}

absl::Status Connector::TakePair(const Kept<QueuePair>& pair) {
  if (&pair->domain()->adapter() != &*adapter_) {
    return MakeError(ErrorReason::ADAPTER_MISMATCH, "qp_id");
  }
  uint64_t attempt = 0;
  {
    MutexLock lock(mutex_);
    attempt = record_.attempt;
  }
  return pair->Tie([weak = weak_from_this(), attempt] {
    if (const std::shared_ptr<Closable> self = weak.lock(); self != nullptr) {
      static_cast<Connector&>(*self).Later(attempt, [](Connector& connector) { connector.OnPeerLost(false); });
    }
  });
}

absl::Status Connector::Connect(const ConnectArguments& arguments, Kept<QueuePair> pair, Source source, Done<> done) {
  MutexLock calls(calls_);
  {
    MutexLock lock(mutex_);
    RNICD_RETURN_IF_ERROR(CheckState(ConnectorState::kIdle));
  }
  RNICD_RETURN_IF_ERROR(CheckData(arguments.private_data, adapter_->info().max_caller_data));
  RNICD_RETURN_IF_ERROR(TakePair(pair));
  provider::DeviceQueuePair& device_pair = pair->device();
  std::shared_ptr<provider::ConnectorListener> listener = NewListener();
  auto created = adapter_->device().CreateConnector(listener);
  absl::Status status = created.status();
  std::shared_ptr<provider::DeviceConnector> device;
  const provider::ConnectionPath path{.local = source.address, .peer = arguments.peer, .shares_port = source.is_shared};
  const ReadLimits limits = Capped(arguments.limits, adapter_->info());
  {
    MutexLock lock(mutex_);
    attempt_.pair.emplace(std::move(pair));
    attempt_.queue_pair = arguments.queue_pair;
    attempt_.source = std::move(source.hold);
    attempt_.endpoint = std::move(source.endpoint);
    record_.addresses = {.local = path.local, .peer = path.peer};
    record_.limits = limits;
    record_.received = {};
    record_.was_rejected = false;
    record_.sent_bytes = arguments.private_data.size();
    if (status.ok()) {
      device = *std::move(created);
      attempt_.device = device;
      status = BeginRequest(ConnectorState::kConnecting, std::move(done));
    }
  }
  if (status.ok()) {
    status = device->Connect(device_pair, path, OfferOf(limits, arguments.private_data));
  }
  return status.ok() ? status : RefuseConnect(status);
}

// A request that was cancelled meanwhile has been reported.
absl::Status Connector::RefuseConnect(const absl::Status& status) {
  ConnectorAttempt refused;
  Ended unreported;
  MutexLock lock(mutex_);
  if (record_.state == ConnectorState::kIdle && !attempt_.pair.has_value()) {
    return absl::OkStatus();
  }
  unreported = TakeRequest();
  refused = EndAttempt();
  return status;
}

absl::Status Connector::CompleteConnect(uint64_t disconnect_context, Done<> done) {
  MutexLock calls(calls_);
  std::shared_ptr<provider::DeviceConnector> device;
  provider::ConnectionOffer offer;
  {
    MutexLock lock(mutex_);
    RNICD_RETURN_IF_ERROR(CheckState(ConnectorState::kAnswered));
    RNICD_RETURN_IF_ERROR(BeginRequest(ConnectorState::kCompleting, std::move(done)));
    record_.limits = Effective(record_.limits, record_.received);
    (*attempt_.pair)->SetMayRead(record_.limits.outbound != 0);
    offer = OfferOf(record_.limits);
    events_.disconnect_context = disconnect_context;
    device = attempt_.device;
  }
  if (const absl::Status status = device->CompleteConnect(offer); !status.ok()) {
    Fail(status);
  }
  return absl::OkStatus();
}

absl::Status Connector::Accept(const AcceptArguments& arguments, Kept<QueuePair> pair, Done<> done) {
  MutexLock calls(calls_);
  {
    MutexLock lock(mutex_);
    RNICD_RETURN_IF_ERROR(CheckState(ConnectorState::kRequested));
  }
  RNICD_RETURN_IF_ERROR(CheckData(arguments.private_data, adapter_->info().max_callee_data));
  RNICD_RETURN_IF_ERROR(TakePair(pair));
  provider::DeviceQueuePair& device_pair = pair->device();
  std::shared_ptr<provider::DeviceConnector> device;
  provider::ConnectionOffer offer;
  absl::Status status;
  {
    MutexLock lock(mutex_);
    // The peer may have withdrawn the request meanwhile.
    status = CheckState(ConnectorState::kRequested);
    if (status.ok()) {
      status = BeginRequest(ConnectorState::kAccepting, std::move(done));
    }
    if (!status.ok()) {
      pair->Untie();
      return status;
    }
    record_.limits = Effective(Capped(arguments.limits, adapter_->info()), record_.received);
    pair->SetMayRead(record_.limits.outbound != 0);
    record_.sent_bytes = arguments.private_data.size();
    attempt_.pair.emplace(std::move(pair));
    attempt_.queue_pair = arguments.queue_pair;
    events_.disconnect_context = arguments.disconnect_context;
    offer = OfferOf(record_.limits, arguments.private_data);
    device = attempt_.device;
  }
  if (status = device->Accept(device_pair, offer); !status.ok()) {
    Fail(status);
  }
  return absl::OkStatus();
}

absl::Status Connector::Reject(std::string_view private_data) {
  MutexLock calls(calls_);
  std::shared_ptr<provider::DeviceConnector> device;
  {
    MutexLock lock(mutex_);
    RNICD_RETURN_IF_ERROR(CheckState(record_.passive ? ConnectorState::kRequested : ConnectorState::kAnswered));
    const NdkAdapterInfo& info = adapter_->info();
    RNICD_RETURN_IF_ERROR(CheckData(private_data, record_.passive ? info.max_callee_data : info.max_caller_data));
    SetState(ConnectorState::kEnded);
    record_.sent_bytes = private_data.size();
    device = attempt_.device;
  }
  return device->Reject(private_data);
}

// The flush waits for transfers, so it runs on a worker; a close waits for it, also if the request has ended before.
absl::Status Connector::Disconnect(Done<> done) {
  RNICD_ASSIGN_OR_RETURN(Hold hold, Acquire());
  MutexLock calls(calls_);
  {
    MutexLock lock(mutex_);
    if (record_.state != ConnectorState::kPeerGone) {
      RNICD_RETURN_IF_ERROR(CheckState(ConnectorState::kConnected));
    }
    RNICD_RETURN_IF_ERROR(BeginRequest(ConnectorState::kDisconnecting, std::move(done)));
    events_.disconnect = false;
  }
  requests_.RunOnWorker([this, held = std::make_shared<Hold>(std::move(hold))](const absl::Status& start) {
    if (start.ok()) {
      EndDisconnect();
    }
    held->Release();
  });
  return absl::OkStatus();
}

absl::StatusOr<ConnectionData> Connector::Data() const {
  MutexLock lock(mutex_);
  const bool has_data = record_.state == ConnectorState::kRequested || record_.state == ConnectorState::kAnswered ||
                        (record_.state == ConnectorState::kIdle && record_.was_rejected);
  if (!has_data) {
    return MakeError(ErrorReason::CONNECTOR_STATE, "connector_id");
  }
  return ConnectionData{.private_data = record_.received.private_data,
                        .limits = Effective(record_.limits, record_.received)};
}

absl::StatusOr<ConnectionAddresses> Connector::Addresses() const {
  MutexLock lock(mutex_);
  if (record_.state == ConnectorState::kIdle || record_.state == ConnectorState::kConnecting) {
    return MakeError(ErrorReason::CONNECTOR_STATE, "connector_id");
  }
  return record_.addresses;
}

bool Connector::undecided() const {
  MutexLock lock(mutex_);
  return record_.state == ConnectorState::kRequested;
}

std::optional<ConnectionView> Connector::View() const {
  MutexLock lock(mutex_);
  if (record_.state == ConnectorState::kIdle) {
    return std::nullopt;
  }
  return ConnectionView{.connector = record_.id,
                        .passive = record_.passive,
                        .state = record_.state,
                        .addresses = record_.addresses,
                        .queue_pair = attempt_.queue_pair,
                        .since = record_.since,
                        .sent_bytes = record_.sent_bytes,
                        .received_bytes = record_.received.private_data.size()};
}

}  // namespace rnicd::core
