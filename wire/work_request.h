#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "base/ndk/work_request.h"
#include "rnicd/v1/work_request.pb.h"

namespace rnicd::wire {

// Errors: TRANSFER_TOO_LONG for an SGE that is longer than the wire format allows.
absl::StatusOr<v1::WorkRequest> ToWire(const WorkRequest& request);

// The results have views into the message, which must outlive them.
WorkRequest FromWire(const v1::WorkRequest& request);
std::vector<WorkRequest> FromWire(const google::protobuf::RepeatedPtrField<v1::WorkRequest>& requests);

}  // namespace rnicd::wire
