#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace rnicd::test {

// What rnicd_foreign_peer makes of LENGTH:SEED: differs from its neighbours, between pages and between seeds.
std::string Pattern(uint32_t seed, size_t length);
// "LENGTH:SEED".
std::string PatternName(uint32_t seed, size_t length);
// As rnicd_foreign_peer prints it: FNV-1a, 16 hex digits.
std::string Checksum(const std::string& bytes);

}  // namespace rnicd::test
