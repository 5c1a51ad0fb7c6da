#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "daemon/core/completion_queue.h"
#include "daemon/core/session.h"
#include "daemon/core/work_request.h"
#include "rnicd/v1/queue_service.pb.h"

// Conversions of chains and completions between wire messages and core's types, without decisions.
namespace rnicd::service {

// The result has views into the message, which must outlive it.
std::vector<core::WorkRequest> FromWire(const google::protobuf::RepeatedPtrField<v1::WorkRequest>& requests);

v1::PostResponse ToWire(const core::PostOutcome& outcome);
v1::CqResult ToWire(const core::CqResult& result);
v1::CqResultEx ToWireEx(const core::CqResult& result);
v1::QpState ToWire(provider::QueuePairState state);

// Errors: FIELD_OUT_OF_RANGE for an unknown CqNotifyType.
absl::StatusOr<core::CqNotifyType> FromWire(v1::CqNotifyType type);

}  // namespace rnicd::service
