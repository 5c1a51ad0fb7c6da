#pragma once

#include "provider/api/queue_pair.h"

namespace rnicd::provider {

// Operation type reported by the completion of a request.
inline OperationType TypeOf(const WorkRequest& request) {
  // In the order of the variant.
  static constexpr OperationType kTypes[] = {
      OperationType::kSend,         OperationType::kReceive,    OperationType::kRead, OperationType::kWrite,
      OperationType::kFastRegister, OperationType::kInvalidate, OperationType::kBind};
  return kTypes[request.work.index()];
}

}  // namespace rnicd::provider
