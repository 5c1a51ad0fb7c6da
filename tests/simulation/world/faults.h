#pragma once

#include <array>
#include <cstdint>

#include "base/system/faulty_os.h"
#include "provider/decorator/fault_injecting.h"
#include "tests/simulation/world/refusals.h"

namespace rnicd::simulation {

// A call below core that can be made to fail.
enum class Fault : uint8_t {
  kRegister,
  kDeregister,
  kCreateDomain,
  kCreateCompletionQueue,
  kCreateQueuePair,
  kCreateFastRegion,
  kCreateWindow,
  kEnqueue,
  kCreateMemoryFile,
  kInspect,
  kAddSeals,
  kMap,
  kPopulate,
};
inline constexpr size_t kFaults = 13;

// Failures planned below core, and the model's count of them. Each kind of fault has at most one plan at a time.
class Faults {
 public:
  // Both outlive this.
  Faults(provider::FaultPlan& plan, FaultyOs& os) : plan_(plan), os_(os) {}

  // Makes the next `count` calls of this kind fail.
  void Plan(Fault fault, ErrorReason reason, uint64_t count);
  // Counts one call. True if it must fail; then adds the reason to `why`.
  bool Strikes(Fault fault, Refusals& why);
  // The reason of a card's failure or of a failed system call.
  static ErrorReason ReasonFor(Fault fault, uint64_t choice);

 private:
  struct Planned {
    ErrorReason reason = ErrorReason::UNSPECIFIED;
    uint64_t remaining = 0;
  };
  provider::FaultPlan& plan_;
  FaultyOs& os_;
  std::array<Planned, kFaults> planned_{};
};

}  // namespace rnicd::simulation
