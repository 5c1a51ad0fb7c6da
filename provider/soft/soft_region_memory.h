#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/access_rights.h"
#include "base/mutex.h"
#include "base/units.h"
#include "provider/soft/pin_gate.h"
#include "provider/soft/soft_target.h"

namespace rnicd::provider {

// The memory behind one registration: where the bytes lie, who may touch them, and how.
// Threads: safe. Revoke waits for running transfers, and none begins after it.
class SoftRegionMemory : public SoftTarget {
 public:
  struct Shape {
    // Names the protection domain; any number that is the domain's own.
    uint64_t domain = 0;
    VirtualAddress base;
    uint64_t length = 0;
    // read_sink says whether a read may land here: as granted, or always where the card asks for no such right.
    AccessRights rights;
    std::vector<std::span<std::byte>> runs;
    // Let go of by Revoke.
    std::shared_ptr<const void> backing;
  };
  explicit SoftRegionMemory(Shape shape);

  bool Pin(const SoftAccessor& accessor, SoftAccess access, VirtualAddress address, uint64_t length,
           Pieces& pieces) override;
  void Unpin() override { gate_.Leave(); }

  uint64_t domain() const { return shape_.domain; }
  // True for the first who revokes.
  bool Revoke();

  // Bound windows keep their region from being deregistered. False when it is.
  bool AddWindow();
  void RemoveWindow();
  // False while there are windows; otherwise none can come any more.
  bool RefuseWindows();

 private:
  bool Allows(const SoftAccessor& accessor, SoftAccess access) const;

  Shape shape_;
  // Where each run begins, counted from the base.
  std::vector<uint64_t> run_offsets_;
  PinGate gate_;

  Mutex mutex_;
  uint64_t windows_ RNICD_GUARDED_BY(mutex_) = 0;
  bool refuses_windows_ RNICD_GUARDED_BY(mutex_) = false;
};

}  // namespace rnicd::provider
