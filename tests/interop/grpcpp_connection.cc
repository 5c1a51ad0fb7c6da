#include "tests/interop/grpcpp_connection.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <stdexcept>

#include "absl/strings/str_cat.h"

namespace rnicd::interop {
namespace {

constexpr uint32_t kStatusPending = 0x103;

std::shared_ptr<grpc::Channel> Connect(const std::string& socket, grpc::ChannelArguments arguments) {
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  return grpc::CreateCustomChannel("unix:" + socket, grpc::InsecureChannelCredentials(), arguments);
}

// A call of a generated stub with the usual deadline, which must succeed.
template <typename Stub, typename Request, typename Response>
Response Call(Stub& stub, grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
              const Request& request) {
  grpc::ClientContext context;
  SetTimeout(context, kTimeout);
  Response response;
  CheckOk((stub.*method)(&context, request, &response), Request::descriptor()->name());
  return response;
}

}  // namespace

void Check(bool condition, const std::string& seen) {
  if (!condition) {
    throw std::runtime_error(seen);
  }
}

std::string Told(const grpc::Status& status) { return absl::StrCat(status.error_code(), " ", status.error_message()); }

void CheckOk(const grpc::Status& status, const std::string& what) {
  Check(status.ok(), absl::StrCat(what, ": ", Told(status)));
}

void CheckCode(const grpc::Status& status, grpc::StatusCode code) { Check(status.error_code() == code, Told(status)); }

void CheckRefused(const grpc::Status& status, grpc::StatusCode code, v1::ErrorReason reason, const std::string& field) {
  CheckCode(status, code);
  v1::RpcStatus envelope;
  v1::ErrorDetail detail;
  Check(envelope.ParseFromString(status.error_details()) && envelope.details_size() == 1 &&
            envelope.details(0).UnpackTo(&detail),
        Told(status) + ", without a detail");
  Check(envelope.code() == status.error_code() && envelope.message() == status.error_message(),
        Told(status) + " is not " + envelope.ShortDebugString());
  Check(detail.reason() == reason && detail.field() == field, detail.ShortDebugString());
}

void SetTimeout(grpc::ClientContext& context, std::chrono::microseconds timeout) {
  context.set_deadline(std::chrono::system_clock::now() + timeout);
}

EventStream::EventStream(v1::SessionService::Stub& stub, std::chrono::milliseconds timeout) {
  SetTimeout(context_, timeout);
  reader_ = stub.WatchEvents(&context_, {});
}

void EventStream::ExpectEvent(uint64_t context) {
  v1::WatchEventsResponse event;
  Check(reader_->Read(&event), "the stream has ended");
  Check(event.sequence() == context && event.request_completed().request_context() == context,
        event.ShortDebugString());
}

void EventStream::ExpectLastEvent(const std::string& cause) {
  v1::WatchEventsResponse event;
  Check(reader_->Read(&event), "the stream ended without its last event");
  Check(event.session_ending().cause() == cause, event.ShortDebugString());
}

void EventStream::ExpectCancelled() {
  context_.TryCancel();
  CheckCode(Finish(), grpc::StatusCode::CANCELLED);
}

grpc::Status EventStream::Finish() {
  v1::WatchEventsResponse event;
  while (reader_->Read(&event)) {
  }
  return reader_->Finish();
}

Connection::Connection(const std::string& socket, grpc::ChannelArguments arguments)
    : channel_(Connect(socket, std::move(arguments))),
      sessions_(v1::SessionService::NewStub(channel_)),
      adapters_(v1::AdapterService::NewStub(channel_)),
      memory_(v1::MemoryService::NewStub(channel_)) {}

grpc::Status Connection::OpenSession(const std::string& label) {
  grpc::ClientContext context;
  SetTimeout(context, kTimeout);
  v1::OpenSessionRequest request;
  request.set_label(label);
  v1::OpenSessionResponse response;
  return sessions_->OpenSession(&context, request, &response);
}

v1::ListAdaptersResponse Connection::ListAdapters() {
  return Call(*adapters_, &v1::AdapterService::Stub::ListAdapters, v1::ListAdaptersRequest());
}

std::unique_ptr<ListCall> Connection::StartListAdapters() {
  return std::make_unique<ListCall>(v1::ListAdaptersRequest(), kTimeout,
                                    [this](auto* context, const auto* request, auto* response, auto ended) {
                                      adapters_->async()->ListAdapters(context, request, response, std::move(ended));
                                    });
}

std::unique_ptr<RawCall> Connection::StartRaw(const std::string& method, const std::string& bytes,
                                              std::chrono::microseconds timeout) {
  const grpc::Slice slice(bytes);
  return std::make_unique<RawCall>(
      grpc::ByteBuffer(&slice, 1), timeout, [&](auto* context, const auto* request, auto* response, auto ended) {
        grpc::GenericStub(channel_).UnaryCall(context, "/rnicd.v1." + method, {}, request, response, std::move(ended));
      });
}

grpc::Status Connection::CallRaw(const std::string& method, const std::string& bytes) {
  return StartRaw(method, bytes, kTimeout)->status();
}

void Connection::OpenAdapter() {
  adapter_id_ = Call(*adapters_, &v1::AdapterService::Stub::OpenAdapter, v1::OpenAdapterRequest()).adapter_id();
}

Connection::BusyPd Connection::MakeBusyPd() {
  v1::CreatePdRequest pd;
  pd.set_adapter_id(adapter_id_);
  v1::CreateMrRequest mr;
  mr.set_pd_id(Call(*memory_, &v1::MemoryService::Stub::CreatePd, pd).pd_id());
  return {.pd_id = mr.pd_id(), .mr_id = Call(*memory_, &v1::MemoryService::Stub::CreateMr, mr).mr_id()};
}

std::unique_ptr<ClosePdCall> Connection::StartClosePd(uint64_t pd_id, std::chrono::milliseconds timeout) {
  v1::ClosePdRequest request;
  request.set_pd_id(pd_id);
  return std::make_unique<ClosePdCall>(request, timeout,
                                       [this](auto* context, const auto* close, auto* response, auto ended) {
                                         memory_->async()->ClosePd(context, close, response, std::move(ended));
                                       });
}

void Connection::CloseMr(uint64_t mr_id) {
  v1::CloseMrRequest request;
  request.set_mr_id(mr_id);
  Call(*memory_, &v1::MemoryService::Stub::CloseMr, request);
}

uint64_t Connection::AllocateMemory() {
  v1::AllocateMemoryRequest request;
  request.set_size(65536);
  return Call(*memory_, &v1::MemoryService::Stub::AllocateMemory, request).memory_id();
}

void Connection::ReleaseMemory(uint64_t memory_id) {
  v1::ReleaseMemoryRequest request;
  request.set_memory_id(memory_id);
  Call(*memory_, &v1::MemoryService::Stub::ReleaseMemory, request);
}

void Connection::GetSession() { Call(*sessions_, &v1::SessionService::Stub::GetSession, v1::GetSessionRequest()); }

void Connection::CloseSession() {
  Call(*sessions_, &v1::SessionService::Stub::CloseSession, v1::CloseSessionRequest());
}

void Connection::CauseEvent(uint64_t context) {
  const BusyPd busy = MakeBusyPd();
  v1::ClosePdRequest close;
  close.set_pd_id(busy.pd_id);
  close.set_allow_pending(true);
  close.set_request_context(context);
  const v1::ClosePdResponse response = Call(*memory_, &v1::MemoryService::Stub::ClosePd, close);
  Check(response.ntstatus() == kStatusPending, response.ShortDebugString());
  CloseMr(busy.mr_id);
}

std::unique_ptr<EventStream> Connection::Watch() {
  auto stream = std::make_unique<EventStream>(*sessions_, kTimeout);
  stream->AwaitBegin();
  return stream;
}

std::unique_ptr<Connection> ConnectWithSession(const std::string& socket, const grpc::ChannelArguments& arguments) {
  auto connection = std::make_unique<Connection>(socket, arguments);
  CheckOk(connection->OpenSession("interop"), "OpenSession");
  connection->OpenAdapter();
  return connection;
}

}  // namespace rnicd::interop
