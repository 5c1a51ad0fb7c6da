#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace rnicd::test {

// The bytes that rnicd_foreign_peer generates for LENGTH:SEED: they differ between neighbours, pages and seeds.
std::string Pattern(uint32_t seed, size_t length);
// "LENGTH:SEED".
std::string PatternName(uint32_t seed, size_t length);
// The checksum that rnicd_foreign_peer prints: FNV-1a, 16 hex digits.
std::string Checksum(const std::string& bytes);

}  // namespace rnicd::test
