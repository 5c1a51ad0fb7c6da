#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rnicd::provider {

// Runs are the pieces of this process's memory that a client's range is made of, end to end.

// The same bytes in as few runs as can be: empty ones are gone, neighbours are one.
std::vector<std::span<std::byte>> JoinRuns(std::span<const std::span<std::byte>> runs);
// The bytes [offset, offset + length), or as many of them as there are.
std::vector<std::span<std::byte>> SliceRuns(std::span<const std::span<std::byte>> runs, uint64_t offset,
                                            uint64_t length);

}  // namespace rnicd::provider
