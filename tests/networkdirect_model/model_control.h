#pragma once

#include <cstddef>
#include <cstdint>

#include "provider/networkdirect/card/nd2.h"

namespace rnicd::provider {

// How the model completes a call that could complete at once.
enum class ModelPending : uint32_t {
  // The call returns the status.
  kInline,
  // It pends, and is notified.
  kPending,
  // It pends, is notified, pends again, and is notified a second time.
  kTwoPhases,
  // One of these, in turns.
  kMixed,
};

// Objects and registrations that exist.
struct ModelCounts {
  uint64_t objects = 0;
  uint64_t regions = 0;
  uint64_t bound_windows = 0;
  uint64_t pending_calls = 0;
};

// What a test can make the cards of the model do. Only plain types, because it crosses the border of a DLL.
// Lifetime: that of the IND2Provider.
// Threads:  safe.
class ModelControl {
 public:
  virtual void SetPending(ModelPending mode) = 0;
  // The next `count` calls of the method, after `skip` more, return `result` and do nothing. A method is named as in
  // "IND2MemoryRegion::Register". For "completion" the next requests end with `result`. A count of 0 ends the fault.
  virtual void FailNext(const char* method, HRESULT result, uint32_t skip, uint32_t count) = 0;
  // While held, the cards execute nothing.
  virtual void Hold(bool held) = 0;
  // A card is pulled out.
  virtual void Remove(UINT64 adapter_id) = 0;
  virtual ModelCounts Count() const = 0;
  // Copies the client's first violation of a rule of the interface; the empty text if there is none.
  virtual void FirstViolation(char* text, size_t bytes) const = 0;
  // True when nothing that was posted can be executed, or its result waits to be taken.
  virtual bool IsIdle() const = 0;
  // Invalidates and binds that the cards have executed.
  virtual uint64_t BindsExecuted() const = 0;
  virtual uint64_t InvalidatesExecuted() const = 0;

 protected:
  ~ModelControl() = default;
};

// Exported by the DLL beside what the interface wants. Null for a provider that is not the model's.
inline constexpr char kModelControlName[] = "RnicdNetworkDirectModelControl";
using ModelControlFunction = ModelControl* (*)(IND2Provider* provider);

}  // namespace rnicd::provider
