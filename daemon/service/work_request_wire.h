#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "daemon/core/completion_queue.h"
#include "daemon/core/session.h"
#include "daemon/core/work_request.h"
#include "rnicd/v1/queue_service.pb.h"

// Chains and completions, wire to core and back; nothing here decides anything.
namespace rnicd::service {

// Views into the message, which must outlive what is returned.
std::vector<core::WorkRequest> FromWire(const google::protobuf::RepeatedPtrField<v1::WorkRequest>& requests);

v1::PostResponse ToWire(const core::PostOutcome& outcome);
v1::CqResult ToWire(const core::CqResult& result);
v1::CqResultEx ToWireEx(const core::CqResult& result);
v1::QpState ToWire(provider::QueuePairState state);

// Errors: FIELD_OUT_OF_RANGE for a number that is no CqNotifyType.
absl::StatusOr<core::CqNotifyType> FromWire(v1::CqNotifyType type);

}  // namespace rnicd::service
