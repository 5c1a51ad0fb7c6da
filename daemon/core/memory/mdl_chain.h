#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ndk/registration.h"
#include "base/strong_id.h"
#include "base/units.h"
#include "daemon/core/memory/memory_object.h"

namespace rnicd::core {

inline constexpr size_t kMaxMdlEntries = 8192;

// The part of a dma-buf that a chain covers. Its length is the chain's.
struct DmabufPart {
  // Valid while the range's Use exists.
  int file = -1;
  // Bytes from the start of the dma-buf.
  uint64_t offset = 0;
};

// A chain that passed every check: the location of its bytes in this process, and the right to touch them. A dma-buf
// has no bytes in this process: only a card that registers dma-bufs can use such a range.
struct MappedRange {
  VirtualAddress base;
  uint64_t length = 0;
  // Number of pages of kNdkPageBytes that [base, base + length) touches.
  uint64_t pages = 0;
  // Size in bytes of the smallest page behind the range.
  uint64_t page_bytes = 0;
  // Runs of host bytes; entries that adjoin in memory share one run. Empty for a dma-buf.
  std::vector<std::span<std::byte>> runs;
  // Absent unless the chain lies in a dma-buf.
  std::optional<DmabufPart> dmabuf;
  // The same range as pages of their files, for charging.
  std::vector<PageRun> page_runs;
  std::vector<MemoryObject::Use> uses;
};

// Finds a memory object of the caller's session; null when there is none.
using MemoryLookup = std::function<std::shared_ptr<MemoryObject>(MemoryObjectId)>;

// Checks the chain over `length` bytes and resolves it. Every entry must be sound, those beyond `length` too; only the
// contiguity rule ends at `length`.
// Errors: LENGTH_*, MDL_*, OBJECT_NOT_FOUND, MEMORY_NOT_ATTACHED, MEMORY_NOT_SEALED, each with its field;
// DEVICE_NOT_CAPABLE for a dma-buf beside another piece of memory.
// Source: NDK_FN_REGISTER_MR.
absl::StatusOr<MappedRange> ResolveMdlChain(std::span<const MdlEntry> chain, uint64_t length,
                                            const MemoryLookup& find_memory);

}  // namespace rnicd::core
