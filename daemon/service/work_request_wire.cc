#include "daemon/service/work_request_wire.h"

#include "base/completion_reason.h"
#include "base/status.h"
#include "daemon/wire/error_detail.h"

namespace rnicd::service {
namespace {

core::Sges FromWire(const google::protobuf::RepeatedPtrField<v1::Sge>& sges) {
  core::Sges out;
  out.reserve(static_cast<size_t>(sges.size()));
  for (const v1::Sge& sge : sges) {
    out.push_back({.address = sge.address(),
                   .length = sge.length(),
                   .token = LocalToken{sge.token()},
                   .inline_data = sge.inline_data()});
  }
  return out;
}

core::FastRegisterOperation FromWire(const v1::WorkRequest::FastRegister& wire) {
  const auto& pages = wire.adapter_page_array();
  return {.region = MemoryRegionId{wire.mr_id()},
          .pages = std::span<const uint64_t>(pages.data(), static_cast<size_t>(pages.size())),
          .fbo = wire.fbo(),
          .length = wire.length(),
          .base = VirtualAddress{wire.base_virtual_address()}};
}

core::InvalidateOperation FromWire(const v1::WorkRequest::Invalidate& wire) {
  switch (wire.target_case()) {
    case v1::WorkRequest::Invalidate::kMrId:
      return {.target = MemoryRegionId{wire.mr_id()}};
    case v1::WorkRequest::Invalidate::kMwId:
      return {.target = MemoryWindowId{wire.mw_id()}};
    case v1::WorkRequest::Invalidate::TARGET_NOT_SET:
      break;
  }
  return {};
}

core::BindOperation FromWire(const v1::WorkRequest::Bind& wire) {
  return {.region = MemoryRegionId{wire.mr_id()},
          .window = MemoryWindowId{wire.mw_id()},
          .address = VirtualAddress{wire.virtual_address()},
          .length = wire.length()};
}

void FillOperation(const v1::WorkRequest& wire, core::WorkRequest& out) {
  switch (wire.operation_case()) {
    case v1::WorkRequest::kSend:
      out.operation = core::SendOperation{FromWire(wire.send().sges())};
      break;
    case v1::WorkRequest::kSendAndInvalidate:
      out.operation = core::SendAndInvalidateOperation{.sges = FromWire(wire.send_and_invalidate().sges()),
                                                       .token = RemoteToken{wire.send_and_invalidate().remote_token()}};
      break;
    case v1::WorkRequest::kReceive:
      out.operation = core::ReceiveOperation{FromWire(wire.receive().sges())};
      break;
    case v1::WorkRequest::kRead:
      out.operation = core::ReadOperation{.sges = FromWire(wire.read().sges()),
                                          .remote_address = VirtualAddress{wire.read().remote_address()},
                                          .remote_token = RemoteToken{wire.read().remote_token()}};
      break;
    case v1::WorkRequest::kWrite:
      out.operation = core::WriteOperation{.sges = FromWire(wire.write().sges()),
                                           .remote_address = VirtualAddress{wire.write().remote_address()},
                                           .remote_token = RemoteToken{wire.write().remote_token()}};
      break;
    case v1::WorkRequest::kFastRegister:
      out.operation = FromWire(wire.fast_register());
      break;
    case v1::WorkRequest::kInvalidate:
      out.operation = FromWire(wire.invalidate());
      break;
    case v1::WorkRequest::kBind:
      out.operation = FromWire(wire.bind());
      break;
    case v1::WorkRequest::OPERATION_NOT_SET:
      break;
  }
}

}  // namespace

std::vector<core::WorkRequest> FromWire(const google::protobuf::RepeatedPtrField<v1::WorkRequest>& requests) {
  std::vector<core::WorkRequest> out;
  out.reserve(static_cast<size_t>(requests.size()));
  for (const v1::WorkRequest& wire : requests) {
    core::WorkRequest& request = out.emplace_back();
    request.request_context = wire.request_context();
    request.flags = wire.flags();
    FillOperation(wire, request);
  }
  return out;
}

v1::PostResponse ToWire(const core::PostOutcome& outcome) {
  v1::PostResponse wire;
  wire.set_posted(outcome.posted);
  if (!outcome.failure.ok()) {
    *wire.mutable_failure() = wire::ToErrorDetail(outcome.failure);
  }
  wire.mutable_issued_tokens()->Reserve(static_cast<int>(outcome.issued.size()));
  for (const core::IssuedToken& issued : outcome.issued) {
    v1::IssuedToken* token = wire.add_issued_tokens();
    token->set_request_index(issued.request_index);
    token->set_remote_token(issued.token.value);
  }
  return wire;
}

v1::CqResult ToWire(const core::CqResult& result) {
  v1::CqResult wire;
  wire.set_ntstatus(static_cast<uint32_t>(result.completion.status));
  wire.set_bytes_transferred(result.completion.bytes);
  wire.set_qp_context(result.qp_context);
  wire.set_request_context(result.completion.request_context);
  wire.set_reason(static_cast<v1::ErrorReason>(
      CompletionReason(result.completion.type, result.completion.status, result.completion.at_peer)));
  return wire;
}

v1::CqResultEx ToWireEx(const core::CqResult& result) {
  v1::CqResultEx wire;
  *wire.mutable_result() = ToWire(result);
  wire.set_type(static_cast<v1::OperationType>(result.completion.type));
  wire.set_type_specific_completion_output(result.completion.invalidated.value);
  return wire;
}

v1::QpState ToWire(provider::QueuePairState state) {
  switch (state) {
    case provider::QueuePairState::kInit:
      return v1::QP_STATE_INIT;
    case provider::QueuePairState::kReadyToSend:
      return v1::QP_STATE_READY_TO_SEND;
    case provider::QueuePairState::kError:
      return v1::QP_STATE_ERROR;
  }
  return v1::QP_STATE_UNSPECIFIED;
}

absl::StatusOr<core::CqNotifyType> FromWire(v1::CqNotifyType type) {
  switch (type) {
    case v1::CQ_NOTIFY_TYPE_ERRORS:
      return core::CqNotifyType::kErrors;
    case v1::CQ_NOTIFY_TYPE_ANY:
      return core::CqNotifyType::kAny;
    case v1::CQ_NOTIFY_TYPE_SOLICITED:
      return core::CqNotifyType::kSolicited;
    default:
      return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, "type");
  }
}

}  // namespace rnicd::service
