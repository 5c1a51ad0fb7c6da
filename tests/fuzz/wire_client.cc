#include "tests/fuzz/wire_client.h"

#include <grpcpp/create_channel_posix.h>
#include <grpcpp/security/credentials.h>

#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include "base/error_reason.h"
#include "rnicd/v1/error.pb.h"
#include "rnicd/v1/session_service.pb.h"
#include "tests/fuzz/check.h"

namespace rnicd::fuzz {
namespace {

using google::protobuf::Message;
using google::protobuf::MethodDescriptor;

// Far more than most calls need; a call that takes longer overlaps with the next ones.
constexpr std::chrono::milliseconds kMoment{20};
constexpr std::chrono::seconds kTimeout{20};

grpc::ByteBuffer ToBuffer(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

std::string ToBytes(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  Check(buffer.Dump(&slices).ok(), "a response can be read");
  std::string bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

void LearnFrom(const MethodDescriptor* method, const grpc::ByteBuffer& buffer, WirePool& pool) {
  const std::shared_ptr<Message> answer = NewMessage(method->output_type());
  Check(answer->ParseFromString(ToBytes(buffer)), "a response is a valid message");
  pool.Learn(*answer);
}

bool IsSound(const MethodDescriptor* method, const std::string& bytes) {
  return NewMessage(method->input_type())->ParseFromString(bytes);
}

// Only a health watch does not end with a session.
bool IsEndless(const MethodDescriptor& method) { return method.full_name() == "grpc.health.v1.Health.Watch"; }

// The daemon's refusals carry a reason; a malformed message never reaches the daemon's code.
void CheckFailure(const MethodDescriptor* method, const grpc::Status& status) {
  const std::string what =
      method->full_name() + ": " + std::to_string(status.error_code()) + " " + status.error_message();
  v1::RpcStatus envelope;
  v1::ErrorDetail detail;
  Check(envelope.ParseFromString(status.error_details()) && envelope.details_size() == 1 &&
            envelope.details(0).UnpackTo(&detail),
        "a refusal has its detail: " + what);
  Check(detail.reason() != v1::ERROR_REASON_UNSPECIFIED && detail.reason() != v1::ERROR_REASON_INTERNAL_FAULT,
        "no call is a fault of ours: " + what);
  const ErrorReasonRow& row = RowOf(static_cast<ErrorReason>(detail.reason()));
  Check(static_cast<int>(row.code) == static_cast<int>(status.error_code()), "a reason has its code: " + what);
}

// Prints the result of each call, for authors of scripts.
void Trace(const MethodDescriptor* method, const grpc::Status& status, const grpc::ByteBuffer& buffer) {
  static const bool wanted = std::getenv("RNICD_FUZZ_TRACE") != nullptr;
  if (wanted) {
    const std::shared_ptr<Message> answer = NewMessage(method->output_type());
    (void)answer->ParseFromString(status.ok() ? ToBytes(buffer) : "");
    std::fprintf(stderr, "%s: %s%s\n", method->name().c_str(), status.error_message().c_str(),
                 answer->ShortDebugString().c_str());
  }
}

// State of a call in flight; it deletes itself at its end, and does not access its client after that.
struct CallState {
  CallState(const MethodDescriptor* called, const std::string& bytes, OpenCalls& open, WirePool& learned)
      : method(called),
        sound(IsSound(called, bytes)),
        request(ToBuffer(bytes)),
        calls(open),
        pool(learned),
        number(open.Begin(context)) {}

  std::string Path() const { return "/" + method->service()->full_name() + "/" + method->name(); }
  void End(const grpc::Status& status) {
    const bool cancelled =
        calls.cut_off() || (IsEndless(*method) && status.error_code() == grpc::StatusCode::CANCELLED);
    if (!status.ok() && sound && !cancelled) {
      CheckFailure(method, status);
    }
    // A context holds a reference to its channel. The release of the last reference waits for gRPC's threads to end,
    // and this is one of them, so the client must release last. Reset the context here: the client may be destroyed as
    // soon as the call has ended.
    context.reset();
    calls.End(number);
  }

  const MethodDescriptor* const method;
  const bool sound;
  const grpc::ByteBuffer request;
  grpc::ByteBuffer answer;
  OpenCalls& calls;
  WirePool& pool;
  std::shared_ptr<grpc::ClientContext> context = std::make_shared<grpc::ClientContext>();
  const uint64_t number;
};

void BeginUnary(grpc::GenericStub& stub, std::unique_ptr<CallState> state) {
  CallState* const call = state.release();
  stub.UnaryCall(call->context.get(), call->Path(), grpc::StubOptions(), &call->request, &call->answer,
                 [call](const grpc::Status& status) {
                   const std::unique_ptr<CallState> ended(call);
                   Trace(call->method, status, call->answer);
                   if (status.ok()) {
                     LearnFrom(call->method, call->answer, call->pool);
                   }
                   call->End(status);
                 });
}

// Reads a stream to its end.
class StreamReader final : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  StreamReader(grpc::GenericStub& stub, std::unique_ptr<CallState> state) : state_(std::move(state)) {
    stub.PrepareBidiStreamingCall(state_->context.get(), state_->Path(), grpc::StubOptions(), this);
    StartWriteLast(&state_->request, grpc::WriteOptions());
    StartRead(&state_->answer);
    StartCall();
  }

  void OnReadDone(bool ok) override {
    if (ok) {
      Trace(state_->method, grpc::Status::OK, state_->answer);
      LearnFrom(state_->method, state_->answer, state_->pool);
      StartRead(&state_->answer);
    }
  }
  void OnDone(const grpc::Status& status) override {
    const std::unique_ptr<StreamReader> ended(this);
    state_->End(status);
  }

 private:
  const std::unique_ptr<CallState> state_;
};

}  // namespace

uint64_t OpenCalls::Begin(std::shared_ptr<grpc::ClientContext> context) {
  MutexLock lock(mutex_);
  contexts_[next_] = std::move(context);
  return next_++;
}

void OpenCalls::End(uint64_t call) {
  MutexLock lock(mutex_);
  contexts_.erase(call);
  changed_.NotifyAll();
}

bool OpenCalls::AwaitOne(uint64_t call, std::chrono::milliseconds timeout) {
  const Instant deadline = std::chrono::steady_clock::now() + timeout;
  MutexLock lock(mutex_);
  while (contexts_.contains(call)) {
    if (!changed_.WaitUntil(mutex_, deadline)) {
      return !contexts_.contains(call);
    }
  }
  return true;
}

bool OpenCalls::AwaitAll(std::chrono::milliseconds timeout) {
  const Instant deadline = std::chrono::steady_clock::now() + timeout;
  MutexLock lock(mutex_);
  while (!contexts_.empty()) {
    if (!changed_.WaitUntil(mutex_, deadline)) {
      return contexts_.empty();
    }
  }
  return true;
}

// A call may end in the thread that cancels it.
void OpenCalls::Cancel(uint64_t call) {
  std::shared_ptr<grpc::ClientContext> context;
  {
    MutexLock lock(mutex_);
    const auto found = contexts_.find(call);
    context = found != contexts_.end() ? found->second : nullptr;
  }
  if (context != nullptr) {
    context->TryCancel();
  }
}

void OpenCalls::CutOff() {
  std::map<uint64_t, std::shared_ptr<grpc::ClientContext>> contexts;
  {
    MutexLock lock(mutex_);
    cut_off_.store(true);
    contexts = contexts_;
  }
  for (const auto& [call, context] : contexts) {
    context->TryCancel();
  }
}

WireClient::WireClient(FuzzDaemon& daemon, char name, WirePool& pool) : pool_(pool) {
  UniqueFd socket;
  served_ = daemon.Serve(name, socket);
  stub_ = std::make_unique<grpc::GenericStub>(grpc::CreateInsecureChannelFromFd("fuzz", socket.Release()));
}

WireClient::~WireClient() {
  calls_.CutOff();
  AwaitAll();
  served_->Disconnected();
  // The server first: it would not notice a closed client at once.
  served_.reset();
}

uint64_t WireClient::Begin(const MethodDescriptor* method, const std::string& bytes) {
  auto state = std::make_unique<CallState>(method, bytes, calls_, pool_);
  const uint64_t number = state->number;
  if (IsEndless(*method)) {
    endless_.push_back(number);
  }
  if (method->server_streaming()) {
    new StreamReader(*stub_, std::move(state));
  } else {
    BeginUnary(*stub_, std::move(state));
  }
  return number;
}

void WireClient::Call(const Step& step) {
  std::string bytes = step.bytes;
  if (step.request != nullptr) {
    const std::shared_ptr<Message> request = NewMessage(step.request->GetDescriptor());
    request->CopyFrom(*step.request);
    pool_.Resolve(*request);
    bytes = request->SerializePartialAsString();
  }
  // A stream goes on until its session ends.
  const uint64_t call = Begin(step.method, bytes);
  if (!step.method->server_streaming()) {
    (void)calls_.AwaitOne(call, kMoment);
  }
}

void WireClient::CloseSession() {
  const MethodDescriptor* const close = v1::CloseSessionRequest::descriptor()
                                            ->file()
                                            ->FindServiceByName("SessionService")
                                            ->FindMethodByName("CloseSession");
  (void)Begin(close, "");
}

void WireClient::AwaitAll() {
  for (const uint64_t call : std::exchange(endless_, {})) {
    calls_.Cancel(call);
  }
  Check(calls_.AwaitAll(kTimeout), "every call ends");
}

}  // namespace rnicd::fuzz
