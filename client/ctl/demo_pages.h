#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"

namespace rnicd::ctl {

// The numbers from 0 to count - 1 in an order that follows from the seed.
std::vector<size_t> ShuffledOrder(size_t count, uint64_t seed);

// How many pieces of neighbours the order consists of: 1 for 0, 1, 2, ...; 0 for none.
size_t CountPieces(std::span<const size_t> order);

// Fills whole 8-byte words. No two words of a run of bytes are the same, nor are those of another seed in their places.
void FillPattern(std::span<std::byte> bytes, uint64_t seed);

// Ok when `memory`, read page by page in this order, holds the pattern: page order[0] its first 4 KiB, and so on.
// Otherwise a sentence that names the first byte that differs.
absl::Status CheckPattern(std::span<const std::byte> memory, std::span<const size_t> order, uint64_t seed);

}  // namespace rnicd::ctl
