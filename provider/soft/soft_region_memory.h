#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "absl/container/inlined_vector.h"
#include "base/mutex.h"
#include "base/ndk/access_rights.h"
#include "base/units.h"
#include "provider/soft/memory/pin_gate.h"
#include "provider/soft/memory/soft_target.h"

namespace rnicd::provider {

// The memory behind one registration: the location of its bytes, the domain that may access them, and its rights.
// Threads: safe. Revoke waits for running transfers, and none begins after it.
class SoftRegionMemory : public SoftTarget {
 public:
  struct Shape {
    // Identifies the protection domain; any number unique to the domain.
    uint64_t domain = 0;
    VirtualAddress base;
    uint64_t length = 0;
    // read_sink is true if a read may land here: as granted, or always if the card does not require the right.
    AccessRights rights;
    // The list lives as long as the pages that it names.
    std::span<const std::span<std::byte>> runs;
    // Keeps the list of runs and the pages; released by Revoke. Null: the maker keeps them until Revoke.
    std::shared_ptr<const void> backing;
  };
  explicit SoftRegionMemory(Shape shape);

  bool Pin(const SoftAccessor& accessor, SoftAccess access, VirtualAddress address, uint64_t length,
           Pieces& pieces) override;
  void Unpin() override { gate_.Leave(); }

  uint64_t domain() const { return shape_.domain; }
  // True for the first caller of Revoke.
  bool Revoke();

  // Counts a bound window, which prevents the region from being deregistered. False when the region is deregistered.
  bool AddWindow();
  void RemoveWindow();
  // False while windows are bound; otherwise AddWindow fails from now on.
  bool RefuseWindows();

 private:
  bool Allows(const SoftAccessor& accessor, SoftAccess access) const;

  Shape shape_;
  // Start of each run, as an offset from the base in bytes.
  absl::InlinedVector<uint64_t, 16> run_offsets_;
  PinGate gate_;

  Mutex mutex_;
  uint64_t windows_ RNICD_GUARDED_BY(mutex_) = 0;
  bool refuses_windows_ RNICD_GUARDED_BY(mutex_) = false;
};

}  // namespace rnicd::provider
