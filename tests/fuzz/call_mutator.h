#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace rnicd::fuzz {

// Mutates a script to at most `size_max` bytes; the result depends only on script and seed. `mutate_bytes` is
// libFuzzer's mutation of a buffer in place, and returns the new length.
using MutateBytes = size_t (*)(uint8_t* bytes, size_t size, size_t size_max);
std::string MutateScript(std::string_view text, size_t size_max, uint32_t seed, MutateBytes mutate_bytes);

// Joins the beginning of one script and the end of another.
std::string CrossScripts(std::string_view one, std::string_view other, size_t size_max, uint32_t seed);

}  // namespace rnicd::fuzz
