#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "base/access_rights.h"
#include "base/mutex.h"
#include "base/units.h"
#include "provider/api/device.h"

namespace rnicd::provider {

// What a key leads to: where the bytes lie, who may touch them, and how.
// Threads: safe. Revoke waits for a running copy, and none begins after it.
class SoftRegionMemory {
 public:
  // `domain` names the protection domain; any number that is the domain's own.
  SoftRegionMemory(uint64_t domain, const DeviceRegistration& registration);

  // A peer's write or read through a queue pair of `domain`. All or nothing.
  // Errors: REMOTE_ACCESS outside the region, for a missing right, from another domain, and after
  // Revoke.
  absl::Status RemoteWrite(uint64_t domain, VirtualAddress address, std::span<const std::byte> data);
  absl::Status RemoteRead(uint64_t domain, VirtualAddress address, std::span<std::byte> destination);

  void Revoke();

 private:
  absl::Status Check(uint64_t domain, bool allowed, VirtualAddress address, uint64_t length) const
      RNICD_REQUIRES(mutex_);
  // Calls `copy(host bytes, offset in the transfer)` for each run that [offset, offset + length) touches.
  template <typename Copy>
  void ForEachRun(uint64_t offset, uint64_t length, const Copy& copy) RNICD_REQUIRES(mutex_);

  const uint64_t domain_;
  const VirtualAddress base_;
  const uint64_t length_;
  const AccessRights rights_;
  Mutex mutex_;
  std::vector<std::span<std::byte>> runs_ RNICD_GUARDED_BY(mutex_);
  bool revoked_ RNICD_GUARDED_BY(mutex_) = false;
};

}  // namespace rnicd::provider
