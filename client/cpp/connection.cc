#include "client/cpp/connection.h"

#include <cstdlib>
#include <thread>
#include <utility>

#include "base/status.h"
#include "client/cpp/transport_failure.h"

namespace rnicd::inline client {
namespace {

std::string PathIn(const std::string& directory, const std::string& name) { return directory + "/" + name; }

std::string GrantOf(const ClientOptions& options) {
  const char* const environment = std::getenv("RNICD_GRANT");
  return options.grant.empty() && environment != nullptr ? environment : options.grant;
}

}  // namespace

Connection::Connection(ClientOptions options)
    : options_(std::move(options)),
      channel_(MakeUnixChannel(PathIn(options_.socket_dir, "rpc.sock"))),
      session_stub_(v1::SessionService::NewStub(channel_)),
      adapter_stub_(v1::AdapterService::NewStub(channel_)),
      memory_stub_(v1::MemoryService::NewStub(channel_)),
      queue_stub_(v1::QueueService::NewStub(channel_)) {}

absl::StatusOr<std::shared_ptr<Connection>> Connection::Open(ClientOptions options) {
  if (!FitsUnixAddress(PathIn(options.socket_dir, "rpc.sock"))) {
    return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, "socket_dir");
  }
  std::shared_ptr<Connection> connection(new Connection(std::move(options)));
  RNICD_RETURN_IF_ERROR(connection->OpenSession());
  return connection;
}

absl::Status Connection::OpenSession() {
  v1::OpenSessionRequest request;
  request.set_label(options_.label);
  request.set_grant(GrantOf(options_));
  RNICD_ASSIGN_OR_RETURN(const v1::OpenSessionResponse response, Call(&v1::SessionService::Stub::OpenSession, request));
  if (response.fd_socket_name().find('/') != std::string::npos) {
    return TransportFailure(absl::StatusCode::kInternal, "the fd socket's name is a path");
  }
  session_id_ = SessionId{response.session_id()};
  tenant_ = response.tenant();
  fd_socket_path_ = PathIn(options_.socket_dir, response.fd_socket_name());
  events_ = EventStream::Start(*session_stub_, pending_, queue_events_, options_.on_session_ended);
  return absl::OkStatus();
}

Connection::~Connection() {
  if (events_ == nullptr) {
    return;
  }
  events_->ExpectEnd();
  Release(&v1::SessionService::Stub::CloseSession, {});
  if (events_->Stop(options_.release_deadline)) {
    return;
  }
  // The last reference was dropped inside one of the stream's callbacks. The channel must be destroyed on a thread
  // other than gRPC's.
  std::thread([events = std::move(events_), channel = std::move(channel_)] {
    while (!events->Stop(std::chrono::seconds(1))) {
    }
  }).detach();
}

absl::StatusOr<v1::CloseSessionResponse> Connection::CloseSession() {
  events_->ExpectEnd();
  RNICD_ASSIGN_OR_RETURN(v1::CloseSessionResponse response, Call(&v1::SessionService::Stub::CloseSession, {}));
  skip_releases_ = true;
  pending_->Close(MakeError(ErrorReason::SESSION_ENDING, "closed"));
  queue_events_->Close(MakeError(ErrorReason::SESSION_ENDING, "closed"));
  return response;
}

absl::StatusOr<AdapterId> Connection::Adapter() {
  MutexLock lock(mutex_);
  return AdapterLocked();
}

absl::StatusOr<AdapterId> Connection::AdapterLocked() {
  if (adapter_ == AdapterId{}) {
    v1::OpenAdapterRequest request;
    request.set_adapter_name(options_.adapter_name);
    RNICD_ASSIGN_OR_RETURN(const v1::OpenAdapterResponse response,
                           Call(&v1::AdapterService::Stub::OpenAdapter, request));
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
    RNICD_ASSIGN_OR_RETURN(const v1::CreatePdResponse response, Call(&v1::MemoryService::Stub::CreatePd, request));
    protection_domain_ = ProtectionDomainId{response.pd_id()};
  }
  return protection_domain_;
}

}  // namespace rnicd::inline client
