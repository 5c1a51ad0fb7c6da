#include "provider/soft/soft_region_memory.h"

#include <algorithm>
#include <utility>

#include "base/checked_range.h"

namespace rnicd::provider {

SoftRegionMemory::SoftRegionMemory(Shape shape) : shape_(std::move(shape)) {
  run_offsets_.reserve(shape_.runs.size());
  uint64_t offset = 0;
  for (const std::span<std::byte> run : shape_.runs) {
    run_offsets_.push_back(offset);
    offset += run.size();
  }
}

bool SoftRegionMemory::Allows(const SoftAccessor& accessor, SoftAccess access) const {
  if (accessor.domain != shape_.domain) {
    return false;
  }
  switch (access) {
    case SoftAccess::kLocalRead:
    case SoftAccess::kThroughWindow:
      return true;
    case SoftAccess::kLocalWrite:
      return shape_.rights.local_write;
    case SoftAccess::kReadSink:
      return shape_.rights.local_write && shape_.rights.read_sink;
    case SoftAccess::kRemoteRead:
      return shape_.rights.remote_read;
    case SoftAccess::kRemoteWrite:
      return shape_.rights.remote_write;
  }
  return false;
}

bool SoftRegionMemory::Pin(const SoftAccessor& accessor, SoftAccess access, VirtualAddress address, uint64_t length,
                           Pieces& pieces) {
  const auto range = CheckedRange::Make(shape_.base.value, shape_.length);
  if (!Allows(accessor, access) || !range->Contains(address.value, length) || !gate_.Enter()) {
    return false;
  }
  uint64_t offset = address.value - shape_.base.value;
  // The last run that begins at or before the offset.
  auto run = static_cast<size_t>(std::upper_bound(run_offsets_.begin(), run_offsets_.end(), offset) -
                                 run_offsets_.begin() - 1);
  offset -= run_offsets_[run];
  while (length > 0) {
    const uint64_t count = std::min<uint64_t>(shape_.runs[run].size() - offset, length);
    pieces.push_back(shape_.runs[run].subspan(offset, count));
    length -= count;
    offset = 0;
    ++run;
  }
  return true;
}

bool SoftRegionMemory::Revoke() {
  const bool first = gate_.Close();
  if (first) {
    shape_.backing.reset();
  }
  return first;
}

bool SoftRegionMemory::AddWindow() {
  MutexLock lock(mutex_);
  windows_ += refuses_windows_ ? 0 : 1;
  return !refuses_windows_;
}

void SoftRegionMemory::RemoveWindow() {
  MutexLock lock(mutex_);
  --windows_;
}

bool SoftRegionMemory::RefuseWindows() {
  MutexLock lock(mutex_);
  refuses_windows_ = refuses_windows_ || windows_ == 0;
  return refuses_windows_;
}

}  // namespace rnicd::provider
