#include "tests/networkdirect_model/model.h"

namespace rnicd::provider::model {

HANDLE NewOverlappedFile(Model& /*model*/) { return new OverlappedFile(); }

void CloseFileEnds(Model& /*model*/) {}

void BeginPending(HANDLE /*file*/, OVERLAPPED* /*call*/) {}

void NotifyPending(HANDLE file, OVERLAPPED* call) {
  if (OverlappedQueue* const queue = static_cast<OverlappedFile*>(file)->queue; queue != nullptr) {
    queue->Post(call);
  }
}

}  // namespace rnicd::provider::model
