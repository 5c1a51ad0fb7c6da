#include "client/cpp/session/connection.h"

#include <map>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "base/status.h"
#include "client/cpp/channel/daemon_address.h"
#include "client/cpp/channel/environment.h"
#include "client/cpp/channel/fd_socket.h"
#include "client/cpp/rings/system_memory.h"
#include "client/cpp/session/open_attempts.h"

namespace rnicd::inline client {
namespace {

std::string GrantOf(const ClientOptions& options) {
  return options.grant.empty() ? EnvironmentOr("RNICD_GRANT", "") : options.grant;
}

// Replaces an automatic data path by that of the environment, and by calls where rings would not work.
absl::Status ReadDataPath(ClientOptions& options) {
  const std::string value = EnvironmentOr("RNICD_DATA_PATH", "");
  if (options.data_path == DataPath::kAutomatic && !value.empty() && value != "automatic") {
    if (value != "calls" && value != "rings") {
      return MakeErrorWithDetail({.reason = ErrorReason::FIELD_OUT_OF_RANGE, .field = "RNICD_DATA_PATH"},
                                 "it is automatic, calls or rings");
    }
    options.data_path = value == "rings" ? DataPath::kRings : DataPath::kCalls;
  }
  if (!IsWokenThroughMemory()) {
    if (options.data_path == DataPath::kRings) {
      return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, "data_path");
    }
    options.data_path = DataPath::kCalls;
  }
  return absl::OkStatus();
}

}  // namespace

Connection::Connection(ClientOptions options, std::shared_ptr<Channel> channel)
    : options_(std::move(options)),
      channel_(std::move(channel)),
      rings_(std::make_shared<RingPath>(options_.data_path, [this] { return OpenRing(); })) {}

absl::StatusOr<std::shared_ptr<Connection>> Connection::Open(ClientOptions options) {
  RNICD_RETURN_IF_ERROR(ReadDataPath(options));
  OpenAttempts attempts(Instant::clock::now() + options.call_deadline);
  for (;;) {
    RNICD_ASSIGN_OR_RETURN(const std::shared_ptr<Channel> channel,
                           ConnectAsWorkload(options.socket_dir, options.call_deadline));
    std::shared_ptr<Connection> connection(new Connection(options, channel));
    absl::Status opened = connection->OpenSession();
    if (opened.ok()) {
      return connection;
    }
    const auto pause = attempts.PauseAfter(opened, channel->ended(), Instant::clock::now());
    if (!pause.has_value()) {
      return opened;
    }
    // The next attempt finds the daemon without this connection.
    channel->Close();
    std::this_thread::sleep_for(*pause);
  }
}

absl::Status Connection::OpenSession() {
  v1::OpenSessionRequest request;
  request.set_label(options_.label);
  request.set_grant(GrantOf(options_));
  RNICD_ASSIGN_OR_RETURN(const v1::OpenSessionResponse response, Call(kOpenSession, request));
  session_id_ = SessionId{response.session_id()};
  tenant_ = response.tenant();
  RNICD_ASSIGN_OR_RETURN(fd_socket_path_, DescriptorAddress(options_.socket_dir, response.fd_socket_name()));
  const auto close_request = [channel = channel_, deadline = options_.release_deadline](ConnectorId id) {
    v1::CloseConnectorRequest close;
    close.set_connector_id(id.value);
    (void)client::Call(*channel, kCloseConnector, close, deadline);
  };
  events_ = EventStream::Open(channel_, receivers_,
                              {.end_rings = [rings = rings_](const absl::Status& why) { rings->End(why); },
                               .on_end = options_.on_session_ended,
                               .on_adapter_removed = options_.on_adapter_removed,
                               .close_request = close_request,
                               .by_progress = options_.callbacks_in_progress});
  return absl::OkStatus();
}

Connection::~Connection() {
  if (events_ == nullptr) {
    return;
  }
  if (!channel_->CheckProcess().ok()) {
    // Locks, and what threads waited for, are in any state in a child made by fork.
    [[maybe_unused]] auto* const kept = new (std::nothrow) std::shared_ptr<EventStream>(std::move(events_));
    return;
  }
  events_->ExpectEnd();
  Release(kCloseSession, {});
  events_->Stop(options_.release_deadline);
}

absl::StatusOr<v1::CloseSessionResponse> Connection::CloseSession() {
  events_->ExpectEnd();
  RNICD_ASSIGN_OR_RETURN(v1::CloseSessionResponse response, Call(kCloseSession, {}));
  skip_releases_ = true;
  rings_->End(MakeError(ErrorReason::SESSION_ENDING, "closed"));
  const absl::Status closed = MakeError(ErrorReason::SESSION_ENDING, "closed");
  pending().Close(closed);
  queue_events().Close(closed);
  connection_events().Close(closed);
  return response;
}

bool Connection::DeliverLostPosts() {
  std::map<QueuePairId, std::vector<Completion>> lost;
  for (const Completion& request : rings_->TakeLost()) {
    lost[request.queue_pair].push_back(request);
  }
  for (const auto& [id, requests] : lost) {
    v1::FlushRequest flush;
    flush.set_qp_id(id.value);
    (void)Call(kFlush, flush);
  }
  const bool any = !lost.empty();
  lost_posts_.Deliver(std::move(lost));
  return any;
}

// A ring that cannot be used is closed again: it costs memory in the daemon.
absl::StatusOr<std::unique_ptr<RingChannel>> Connection::OpenRing() {
  RNICD_ASSIGN_OR_RETURN(const v1::OpenRingResponse opened, Call(kOpenRing, {}));
  const auto use = [&]() -> absl::StatusOr<std::unique_ptr<RingChannel>> {
    RNICD_ASSIGN_OR_RETURN(UniqueFd doorbell,
                           FetchDescriptor(fd_socket_path_, opened.doorbell_ticket(), options_.call_deadline));
    RNICD_ASSIGN_OR_RETURN(SharedMapping mapping, SharedMapping::Fetch(fd_socket_path_, opened.memory_ticket(),
                                                                       opened.file_bytes(), options_.call_deadline));
    return RingChannel::Open(std::move(mapping), std::move(doorbell),
                             {.deadline = options_.call_deadline,
                              .spin_max = options_.spin_max,
                              .look_for_end = [this] { events_->Poll(); }});
  };
  absl::StatusOr<std::unique_ptr<RingChannel>> channel = use();
  if (!channel.ok()) {
    v1::CloseRingRequest close;
    close.set_ring_id(opened.ring_id());
    Release(kCloseRing, close);
  }
  return channel;
}

absl::StatusOr<AdapterId> Connection::Adapter() {
  MutexLock lock(mutex_);
  return AdapterLocked();
}

absl::StatusOr<AdapterId> Connection::AdapterLocked() {
  if (adapter_ == AdapterId{}) {
    v1::OpenAdapterRequest request;
    request.set_adapter_name(options_.adapter_name);
    RNICD_ASSIGN_OR_RETURN(const v1::OpenAdapterResponse response, Call(kOpenAdapter, request));
    adapter_ = AdapterId{response.adapter_id()};
  }
  return adapter_;
}

absl::StatusOr<ProtectionDomainId> Connection::ProtectionDomain() {
  MutexLock lock(mutex_);
  if (protection_domain_ == ProtectionDomainId{}) {
    RNICD_ASSIGN_OR_RETURN(const AdapterId adapter, AdapterLocked());
    v1::CreatePdRequest request;
    request.set_adapter_id(adapter.value);
    RNICD_ASSIGN_OR_RETURN(const v1::CreatePdResponse response, Call(kCreatePd, request));
    protection_domain_ = ProtectionDomainId{response.pd_id()};
  }
  return protection_domain_;
}

}  // namespace rnicd::inline client
