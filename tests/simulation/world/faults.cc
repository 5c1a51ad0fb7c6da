#include "tests/simulation/world/faults.h"

#include "base/status.h"

namespace rnicd::simulation {

void Faults::Plan(Fault fault, ErrorReason reason, uint64_t count) {
  planned_[static_cast<size_t>(fault)] = {.reason = reason, .remaining = count};
  const absl::Status failure = MakeError(reason);
  switch (fault) {
    case Fault::kRegister:
      return plan_.FailRegister(failure, count);
    case Fault::kDeregister:
      return plan_.FailDeregister(failure, count);
    case Fault::kCreateDomain:
      return plan_.FailCreateProtectionDomain(failure, count);
    case Fault::kCreateCompletionQueue:
      return plan_.FailCreateCompletionQueue(failure, count);
    case Fault::kCreateQueuePair:
      return plan_.FailCreateQueuePair(failure, count);
    case Fault::kCreateFastRegion:
      return plan_.FailCreateFastRegion(failure, count);
    case Fault::kCreateWindow:
      return plan_.FailCreateMemoryWindow(failure, count);
    case Fault::kEnqueue:
      return plan_.FailEnqueue(failure, count);
    case Fault::kCreateMemoryFile:
      return os_.FailNext("CreateMemoryFile", failure, count);
    case Fault::kInspect:
      return os_.FailNext("Inspect", failure, count);
    case Fault::kAddSeals:
      return os_.FailNext("AddSeals", failure, count);
    case Fault::kMap:
      return os_.FailNext("Map", failure, count);
    case Fault::kPopulate:
      return os_.FailNext("Populate", failure, count);
  }
}

bool Faults::Strikes(Fault fault, Refusals& why) {
  Planned& planned = planned_[static_cast<size_t>(fault)];
  if (planned.remaining == 0) {
    return false;
  }
  --planned.remaining;
  why.If(true, planned.reason);
  return true;
}

ErrorReason Faults::ReasonFor(Fault fault, uint64_t choice) {
  if (fault == Fault::kAddSeals) {
    return ErrorReason::MEMORY_SEAL_REFUSED;
  }
  if (fault >= Fault::kCreateMemoryFile) {
    return ErrorReason::MEMORY_PAGES_UNAVAILABLE;
  }
  return choice % 2 == 0 ? ErrorReason::DEVICE_FAILED : ErrorReason::DEVICE_OUT_OF_RESOURCES;
}

}  // namespace rnicd::simulation
