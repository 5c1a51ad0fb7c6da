#pragma once

#include <atomic>
#include <cstdint>

#include "daemon/core/tenant/tenant_tally.h"

namespace rnicd::core {

// Counts the connections of one door, for operators. What only grows counts for its tenant's tally too.
// Lifetime: the tally outlives it.
// Threads:  safe.
class DoorUse {
 public:
  explicit DoorUse(TenantTally& tally) : tally_(tally) {}

  // Its grant has a door.
  void Make() {
    exists_.store(true, std::memory_order_relaxed);
    tally_.CountDoor();
  }
  bool exists() const { return exists_.load(std::memory_order_relaxed); }

  void Connected() { connections_.fetch_add(1, std::memory_order_relaxed); }
  void Disconnected() { connections_.fetch_sub(1, std::memory_order_relaxed); }
  void Refused() {
    refused_.fetch_add(1, std::memory_order_relaxed);
    tally_.CountDoorRefusal();
  }
  // Nobody is accepted for a moment, because connections come too fast.
  void Stormed() {
    storms_.fetch_add(1, std::memory_order_relaxed);
    tally_.CountDoorStorm();
  }

  uint64_t connections() const { return connections_.load(std::memory_order_relaxed); }
  uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }
  uint64_t storms() const { return storms_.load(std::memory_order_relaxed); }

 private:
  TenantTally& tally_;
  std::atomic<bool> exists_{false};
  std::atomic<uint64_t> connections_{0};
  std::atomic<uint64_t> refused_{0};
  std::atomic<uint64_t> storms_{0};
};

}  // namespace rnicd::core
