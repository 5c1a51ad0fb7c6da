#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"

namespace rnicd::ctl {

// Returns the numbers from 0 to count - 1 in an order determined by the seed.
std::vector<size_t> ShuffledOrder(size_t count, uint64_t seed);

// Number of runs of consecutive numbers in the order: 1 for 0, 1, 2, ...; 0 for an empty order.
size_t CountPieces(std::span<const size_t> order);

// Fills whole 8-byte words. No two words of one buffer are equal, and buffers of different seeds differ in every word.
void FillPattern(std::span<std::byte> bytes, uint64_t seed);

// OK when `memory`, read page by page in this order, holds the pattern: page order[0] its first 4 KiB, and so on.
// Otherwise an error with a sentence that names the first differing byte.
absl::Status CheckPattern(std::span<const std::byte> memory, std::span<const size_t> order, uint64_t seed);

}  // namespace rnicd::ctl
