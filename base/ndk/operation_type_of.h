#pragma once

#include <iterator>
#include <variant>

#include "base/ndk/operation_type.h"
#include "base/ndk/work_request.h"

namespace rnicd {

// Type of the request's completion, in the initiator queue or as a receive; kSend for a request without operation.
inline OperationType TypeOf(const WorkRequest& request) {
  constexpr OperationType kTypes[] = {OperationType::kSend,         OperationType::kSend,       OperationType::kSend,
                                      OperationType::kReceive,      OperationType::kRead,       OperationType::kWrite,
                                      OperationType::kFastRegister, OperationType::kInvalidate, OperationType::kBind};
  static_assert(std::size(kTypes) == std::variant_size_v<WorkRequest::Operation>);
  return kTypes[request.operation.index()];
}

}  // namespace rnicd
