#pragma once

#include "absl/status/statusor.h"
#include "client/cpp/completion_queue.h"
#include "client/cpp/queue_pair.h"
#include "client/cpp/work_chain.h"
#include "rnicd/v1/queue_service.pb.h"
#include "rnicd/v1/work_request.pb.h"

namespace rnicd::inline client {

// As convert.h, for requests posted to queue pairs and their results.
Completion FromWire(const v1::CqResultEx& result);
PostOutcome FromWire(const v1::PostResponse& response);
QueuePairState FromWire(v1::QpState state);

// Errors: TRANSFER_TOO_LONG for an SGE longer than the wire format allows.
absl::StatusOr<v1::WorkRequest> ToWire(const WorkRequest& request);

}  // namespace rnicd::inline client
