#include "daemon/server/dispatcher.h"

#include <google/protobuf/message.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "base/status.h"
#include "daemon/server/message_check.h"
#include "rnicd/v1/error.pb.h"
#include "wire/error_detail.h"

namespace rnicd::server {
namespace {

using google::protobuf::Message;

// Messages, texts and unknown fields in one request. The largest that any limit leaves useful, a batch of 16,384
// registrations with chains, has fewer than this.
constexpr uint64_t kPartsMax = 131'072;
// Maximum memory of each of them after parsing, in addition to its bytes.
constexpr uint64_t kPartBytes = 128;

// The wire's end of a gate's call.
class RpcEnd final : public gate::ClientEnd {
 public:
  explicit RpcEnd(std::shared_ptr<rpc::ServerCall> call) : call_(std::move(call)) {}

  void BeginStream() override { call_->Begin(); }
  void Write(const Message& message) override { call_->Write(message.SerializeAsString()); }
  void SetOnWritten(std::function<void()> on_written) override { call_->SetOnWritten(std::move(on_written)); }
  void CallLater(std::chrono::nanoseconds delay, std::function<void()> task) override {
    call_->DropMessage();
    call_->CallLater(delay, std::move(task));
  }
  void Finish(const absl::Status& status, const Message* response) override {
    call_->Finish(ToWireStatus(status),
                  response == nullptr ? std::nullopt : std::optional(response->SerializeAsString()));
  }

 private:
  const std::shared_ptr<rpc::ServerCall> call_;
};

// The request, after the check that it is well-formed and fits into the remaining memory budget.
absl::StatusOr<std::unique_ptr<Message>> Read(const gate::Method& method, rpc::ServerCall& call) {
  if (method.request == nullptr) {
    return MakeError(ErrorReason::METHOD_UNKNOWN);
  }
  if (call.message().empty()) {
    return std::unique_ptr<Message>(method.request->New());  // Nothing to check, and every message may be empty.
  }
  RNICD_ASSIGN_OR_RETURN(const uint64_t parts,
                         CheckMessage(*method.request->GetDescriptor(), call.message(), kPartsMax));
  if (!call.Charge(parts * kPartBytes)) {
    return MakeError({.reason = ErrorReason::REQUEST_BUDGET, .requested = parts * kPartBytes});
  }
  std::unique_ptr<Message> request(method.request->New());
  if (!request->ParseFromString(call.message())) {
    return MakeError(ErrorReason::MESSAGE_MALFORMED);
  }
  call.DropMessage();
  return request;
}

}  // namespace

rpc::Status ToWireStatus(const absl::Status& status) {
  if (status.ok() || absl::IsCancelled(status)) {
    return {.code = static_cast<int>(status.code())};  // A cancelled call has no reader.
  }
  const v1::ErrorDetail detail = wire::ToErrorDetail(status);
  const ErrorReasonRow& row = RowOf(ErrorInfoOf(status).reason);
  v1::RpcStatus envelope;
  envelope.set_code(static_cast<int>(row.code));
  envelope.set_message(detail.message());
  envelope.add_details()->PackFrom(detail);
  // abseil's and gRPC's codes are the same numbers.
  return {.code = static_cast<int>(row.code), .message = detail.message(), .details = envelope.SerializeAsString()};
}

void Dispatcher::Dispatch(const std::shared_ptr<rpc::ServerCall>& call) const {
  const gate::Method& method = methods_.Find(call->path());
  gate::Gate::Begun begun = gate_.Begin(method, std::make_shared<RpcEnd>(call));
  if (begun.admitted != nullptr) {
    gate::Gate::Run(std::move(begun.admitted), method,
                    call->refusal().has_value() ? ErrorOf(*call->refusal()) : Read(method, *call));
  }
  if (begun.running.expired()) {
    return;  // Most calls have ended by now.
  }
  call->SetOnCancel([running = std::move(begun.running)] {
    if (const std::shared_ptr<gate::Call> cancelled = running.lock(); cancelled != nullptr) {
      cancelled->Cancel();
    }
  });
}

absl::Status Dispatcher::ErrorOf(const rpc::Refusal& refusal) const {
  switch (refusal.reason) {
    case rpc::Refusal::kMessageTooLarge:
      return MakeError(
          {.reason = ErrorReason::MESSAGE_TOO_LARGE, .limit = message_bytes_max_, .requested = refusal.bytes});
    case rpc::Refusal::kOverBudget:
      return MakeError({.reason = ErrorReason::REQUEST_BUDGET, .requested = refusal.bytes});
    case rpc::Refusal::kCompressed:
      return MakeError(ErrorReason::MESSAGE_COMPRESSED);
    case rpc::Refusal::kMessageCount:
      return MakeErrorWithDetail(ErrorReason::MESSAGE_MALFORMED, "a request is exactly one message");
    case rpc::Refusal::kIncomplete:
      return MakeError(ErrorReason::REQUEST_TIMEOUT);
    case rpc::Refusal::kTimeoutMalformed:
      return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, "grpc-timeout");
    case rpc::Refusal::kSecretMissing:
      return MakeError(ErrorReason::SECRET_REQUIRED, "authorization");
  }
  return MakeError(ErrorReason::INTERNAL_FAULT);
}

}  // namespace rnicd::server
