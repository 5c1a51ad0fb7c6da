#pragma once

#include "absl/status/statusor.h"
#include "base/ndk/completion.h"
#include "base/ndk/post_outcome.h"
#include "base/ndk/queue_pair.h"
#include "rnicd/v1/queue_service.pb.h"
#include "rnicd/v1/work_request.pb.h"

namespace rnicd::wire {

v1::CqResult ToWire(const Completion& completion);
v1::CqResultEx ToWireEx(const Completion& completion);
// Type and invalidated token, which this form of a result does not have, keep their defaults.
Completion FromWire(const v1::CqResult& result);
Completion FromWire(const v1::CqResultEx& result);

v1::PostResponse ToWire(const PostOutcome& outcome);
PostOutcome FromWire(const v1::PostResponse& response);

v1::QpState ToWire(QueuePairState state);
// kError for a state that this library does not know.
QueuePairState FromWire(v1::QpState state);

v1::CqNotifyType ToWire(CqNotifyType type);
// Errors: FIELD_OUT_OF_RANGE for an unknown CqNotifyType.
absl::StatusOr<CqNotifyType> FromWire(v1::CqNotifyType type);

// The fields of the request that are limits.
void SetLimits(const QueuePairLimits& limits, v1::CreateQpRequest* request);
QueuePairLimits LimitsFromWire(const v1::CreateQpRequest& request);

}  // namespace rnicd::wire
