#include "provider/soft/soft_region_memory.h"

#include <algorithm>
#include <cstring>

#include "base/checked_range.h"
#include "base/status.h"

namespace rnicd::provider {

SoftRegionMemory::SoftRegionMemory(uint64_t domain, const DeviceRegistration& registration)
    : domain_(domain),
      base_(registration.base),
      length_(registration.length),
      rights_(registration.rights),
      runs_(registration.runs.begin(), registration.runs.end()) {}

absl::Status SoftRegionMemory::RemoteWrite(uint64_t domain, VirtualAddress address, std::span<const std::byte> data) {
  MutexLock lock(mutex_);
  RNICD_RETURN_IF_ERROR(Check(domain, rights_.remote_write, address, data.size()));
  ForEachRun(address.value - base_.value, data.size(), [data](std::span<std::byte> host, uint64_t offset) {
    std::memcpy(host.data(), data.data() + offset, host.size());
  });
  return absl::OkStatus();
}

absl::Status SoftRegionMemory::RemoteRead(uint64_t domain, VirtualAddress address, std::span<std::byte> destination) {
  MutexLock lock(mutex_);
  RNICD_RETURN_IF_ERROR(Check(domain, rights_.remote_read, address, destination.size()));
  ForEachRun(address.value - base_.value, destination.size(),
             [destination](std::span<std::byte> host, uint64_t offset) {
               std::memcpy(destination.data() + offset, host.data(), host.size());
             });
  return absl::OkStatus();
}

void SoftRegionMemory::Revoke() {
  MutexLock lock(mutex_);
  revoked_ = true;
  runs_.clear();
}

absl::Status SoftRegionMemory::Check(uint64_t domain, bool allowed, VirtualAddress address, uint64_t length) const {
  if (revoked_ || domain != domain_ || !allowed) {
    return MakeError(ErrorReason::REMOTE_ACCESS);
  }
  const auto region = CheckedRange::Make(base_.value, length_);
  return region->Contains(address.value, length) ? absl::OkStatus() : MakeError(ErrorReason::REMOTE_ACCESS);
}

template <typename Copy>
void SoftRegionMemory::ForEachRun(uint64_t offset, uint64_t length, const Copy& copy) {
  uint64_t done = 0;
  for (const std::span<std::byte> run : runs_) {
    if (done == length) {
      return;
    }
    if (offset >= run.size()) {
      offset -= run.size();
      continue;
    }
    const uint64_t count = std::min<uint64_t>(run.size() - offset, length - done);
    copy(run.subspan(offset, count), done);
    done += count;
    offset = 0;
  }
}

}  // namespace rnicd::provider
