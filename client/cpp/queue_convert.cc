#include "client/cpp/queue_convert.h"

#include <limits>
#include <string>

#include "base/status.h"
#include "client/cpp/wire_error.h"

namespace rnicd::inline client {
namespace {

// Either the SGEs or, inline, one entry that contains the bytes themselves.
template <typename Operation>
absl::Status SetPayload(const WorkRequest& request, const std::vector<Sge>& sges, Operation& operation,
                        const std::string& name) {
  for (const Sge& sge : sges) {
    if (sge.length > std::numeric_limits<uint32_t>::max()) {
      return MakeError(ErrorReason::TRANSFER_TOO_LONG, name + ".sges");
    }
    v1::Sge& wire = *operation.add_sges();
    wire.set_address(sge.address);
    wire.set_length(static_cast<uint32_t>(sge.length));
    wire.set_token(sge.token);
  }
  if (!request.inline_data.empty()) {
    v1::Sge& wire = *operation.add_sges();
    wire.set_length(static_cast<uint32_t>(request.inline_data.size()));
    wire.set_inline_data(request.inline_data);
  }
  return absl::OkStatus();
}

// One overload for each operation.
class Writer {
 public:
  Writer(const WorkRequest& request, v1::WorkRequest& wire) : request_(request), wire_(wire) {}

  absl::Status operator()(const WorkRequest::Send& send) {
    if (!send.invalidate.has_value()) {
      return SetPayload(request_, send.sges, *wire_.mutable_send(), "send");
    }
    wire_.mutable_send_and_invalidate()->set_remote_token(send.invalidate->value);
    return SetPayload(request_, send.sges, *wire_.mutable_send_and_invalidate(), "send_and_invalidate");
  }
  absl::Status operator()(const WorkRequest::Receive& receive) {
    return SetPayload(request_, receive.sges, *wire_.mutable_receive(), "receive");
  }
  absl::Status operator()(const WorkRequest::Read& read) {
    wire_.mutable_read()->set_remote_address(read.remote.address.value);
    wire_.mutable_read()->set_remote_token(read.remote.token.value);
    return SetPayload(request_, read.sges, *wire_.mutable_read(), "read");
  }
  absl::Status operator()(const WorkRequest::Write& write) {
    wire_.mutable_write()->set_remote_address(write.remote.address.value);
    wire_.mutable_write()->set_remote_token(write.remote.token.value);
    return SetPayload(request_, write.sges, *wire_.mutable_write(), "write");
  }
  absl::Status operator()(const WorkRequest::FastRegister& fast_register) {
    const FastRegistration& registration = fast_register.registration;
    v1::WorkRequest::FastRegister& wire = *wire_.mutable_fast_register();
    wire.set_mr_id(fast_register.region.value);
    wire.mutable_adapter_page_array()->Reserve(static_cast<int>(registration.pages.size()));
    for (const LogicalAddress page : registration.pages) {
      wire.add_adapter_page_array(page.value);
    }
    wire.set_fbo(registration.fbo);
    wire.set_length(registration.length);
    wire.set_base_virtual_address(registration.base_address.value);
    return absl::OkStatus();
  }
  absl::Status operator()(const WorkRequest::Invalidate& invalidate) {
    if (const auto* region = std::get_if<MemoryRegionId>(&invalidate.target)) {
      wire_.mutable_invalidate()->set_mr_id(region->value);
    } else {
      wire_.mutable_invalidate()->set_mw_id(std::get<MemoryWindowId>(invalidate.target).value);
    }
    return absl::OkStatus();
  }
  absl::Status operator()(const WorkRequest::Bind& bind) {
    v1::WorkRequest::Bind& wire = *wire_.mutable_bind();
    wire.set_mr_id(bind.region.value);
    wire.set_mw_id(bind.window.value);
    wire.set_virtual_address(bind.address.value);
    wire.set_length(bind.length);
    return absl::OkStatus();
  }

 private:
  const WorkRequest& request_;
  v1::WorkRequest& wire_;
};

}  // namespace

Completion FromWire(const v1::CqResultEx& result) {
  return Completion{.status = static_cast<NtStatus>(result.result().ntstatus()),
                    .reason = static_cast<ErrorReason>(result.result().reason()),
                    .type = static_cast<OperationType>(result.type()),
                    .bytes = result.result().bytes_transferred(),
                    .qp_context = result.result().qp_context(),
                    .request_context = result.result().request_context(),
                    .invalidated_token = {static_cast<uint32_t>(result.type_specific_completion_output())}};
}

PostOutcome FromWire(const v1::PostResponse& response) {
  PostOutcome outcome{.posted = response.posted()};
  if (response.has_failure()) {
    outcome.failure = StatusFromDetail(response.failure(), absl::StatusCode::kUnknown);
  }
  for (const v1::IssuedToken& issued : response.issued_tokens()) {
    outcome.issued_tokens.push_back(
        IssuedToken{.request_index = issued.request_index(), .remote_token = RemoteToken{issued.remote_token()}});
  }
  return outcome;
}

QueuePairState FromWire(v1::QpState state) {
  switch (state) {
    case v1::QP_STATE_INIT:
      return QueuePairState::kInit;
    case v1::QP_STATE_READY_TO_SEND:
      return QueuePairState::kReadyToSend;
    default:
      return QueuePairState::kError;
  }
}

absl::StatusOr<v1::WorkRequest> ToWire(const WorkRequest& request) {
  v1::WorkRequest wire;
  wire.set_request_context(request.options.context);
  wire.set_flags(request.options.flags);
  RNICD_RETURN_IF_ERROR(std::visit(Writer(request, wire), request.operation));
  return wire;
}

}  // namespace rnicd::inline client
