#include "wire/queue.h"

#include "base/status.h"
#include "wire/error_detail.h"

namespace rnicd::wire {

v1::CqResult ToWire(const Completion& completion) {
  v1::CqResult wire;
  wire.set_ntstatus(static_cast<uint32_t>(completion.status));
  wire.set_bytes_transferred(completion.bytes);
  wire.set_qp_context(completion.qp_context);
  wire.set_request_context(completion.request_context);
  wire.set_reason(static_cast<v1::ErrorReason>(completion.reason));
  return wire;
}

v1::CqResultEx ToWireEx(const Completion& completion) {
  v1::CqResultEx wire;
  *wire.mutable_result() = ToWire(completion);
  wire.set_type(static_cast<v1::OperationType>(completion.type));
  wire.set_type_specific_completion_output(completion.invalidated_token.value);
  wire.set_qp_id(completion.queue_pair.value);
  wire.set_request_number(completion.request_number);
  return wire;
}

Completion FromWire(const v1::CqResult& result) {
  return {.status = static_cast<NtStatus>(result.ntstatus()),
          .reason = static_cast<ErrorReason>(result.reason()),
          .bytes = result.bytes_transferred(),
          .qp_context = result.qp_context(),
          .request_context = result.request_context()};
}

Completion FromWire(const v1::CqResultEx& result) {
  Completion completion = FromWire(result.result());
  completion.type = static_cast<OperationType>(result.type());
  completion.invalidated_token = RemoteToken{static_cast<uint32_t>(result.type_specific_completion_output())};
  completion.queue_pair = QueuePairId{result.qp_id()};
  completion.request_number = result.request_number();
  return completion;
}

v1::PostResponse ToWire(const PostOutcome& outcome) {
  v1::PostResponse wire;
  wire.set_posted(outcome.posted);
  if (!outcome.failure.ok()) {
    *wire.mutable_failure() = ToErrorDetail(outcome.failure);
  }
  wire.mutable_issued_tokens()->Reserve(static_cast<int>(outcome.issued_tokens.size()));
  for (const IssuedToken& issued : outcome.issued_tokens) {
    v1::IssuedToken* token = wire.add_issued_tokens();
    token->set_request_index(issued.request_index);
    token->set_remote_token(issued.remote_token.value);
  }
  return wire;
}

PostOutcome FromWire(const v1::PostResponse& response) {
  PostOutcome outcome{.posted = response.posted()};
  if (response.has_failure()) {
    outcome.failure = StatusFromDetail(response.failure(), absl::StatusCode::kUnknown);
  }
  outcome.issued_tokens.reserve(static_cast<size_t>(response.issued_tokens_size()));
  for (const v1::IssuedToken& issued : response.issued_tokens()) {
    outcome.issued_tokens.push_back(
        {.request_index = issued.request_index(), .remote_token = RemoteToken{issued.remote_token()}});
  }
  return outcome;
}

v1::QpState ToWire(QueuePairState state) {
  switch (state) {
    case QueuePairState::kInit:
      return v1::QP_STATE_INIT;
    case QueuePairState::kReadyToSend:
      return v1::QP_STATE_READY_TO_SEND;
    case QueuePairState::kError:
      return v1::QP_STATE_ERROR;
  }
  return v1::QP_STATE_UNSPECIFIED;
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

v1::CqNotifyType ToWire(CqNotifyType type) { return static_cast<v1::CqNotifyType>(type); }

absl::StatusOr<CqNotifyType> FromWire(v1::CqNotifyType type) {
  switch (type) {
    case v1::CQ_NOTIFY_TYPE_ERRORS:
      return CqNotifyType::kErrors;
    case v1::CQ_NOTIFY_TYPE_ANY:
      return CqNotifyType::kAny;
    case v1::CQ_NOTIFY_TYPE_SOLICITED:
      return CqNotifyType::kSolicited;
    default:
      return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, "type");
  }
}

void SetLimits(const QueuePairLimits& limits, v1::CreateQpRequest* request) {
  request->set_receive_queue_depth(limits.receive_depth);
  request->set_initiator_queue_depth(limits.initiator_depth);
  request->set_max_receive_request_sge(limits.receive_entries);
  request->set_max_initiator_request_sge(limits.initiator_entries);
  request->set_inline_data_size(limits.inline_bytes);
}

QueuePairLimits LimitsFromWire(const v1::CreateQpRequest& request) {
  return {.receive_depth = request.receive_queue_depth(),
          .initiator_depth = request.initiator_queue_depth(),
          .receive_entries = request.max_receive_request_sge(),
          .initiator_entries = request.max_initiator_request_sge(),
          .inline_bytes = request.inline_data_size()};
}

}  // namespace rnicd::wire
