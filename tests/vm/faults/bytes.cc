#include "tests/vm/faults/bytes.h"

#include <cstdio>

namespace rnicd::test {

std::string Pattern(uint32_t seed, size_t length) {
  constexpr size_t kPageBytes = 4096;
  constexpr size_t kPrime = 251;
  std::string text(length, '\0');
  for (size_t index = 0; index < length; ++index) {
    text[index] = static_cast<char>((index * 13 + index / kPageBytes * 5 + seed % kPrime * 101) % kPrime);
  }
  return text;
}

std::string PatternName(uint32_t seed, size_t length) { return std::to_string(length) + ":" + std::to_string(seed); }

std::string Checksum(const std::string& bytes) {
  uint64_t sum = 0xcbf29ce484222325;
  for (const char byte : bytes) {
    sum = (sum ^ static_cast<uint8_t>(byte)) * 0x100000001b3;
  }
  char text[17];
  std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(sum));
  return text;
}

}  // namespace rnicd::test
