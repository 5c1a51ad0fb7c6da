#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/units.h"

namespace rnicd::fuzz {

// The fuzzer's bytes, read from the front, so that an input can be written by hand and a mutation in the middle does
// not change the steps before it. Reads past the end return zeros.
class Input {
 public:
  Input(const uint8_t* bytes, size_t size) : rest_(bytes, size) {}

  bool empty() const { return rest_.empty(); }

  uint8_t Byte() {
    if (rest_.empty()) {
      return 0;
    }
    const uint8_t byte = rest_.front();
    rest_ = rest_.subspan(1);
    return byte;
  }
  // Below `end`, which is 1 to 256.
  size_t Below(size_t end) { return Byte() % end; }
  bool Bit() { return (Byte() & 1) != 0; }

  // Little-endian.
  uint16_t Short() {
    const uint16_t low = Byte();
    return static_cast<uint16_t>(low | Byte() << 8);
  }
  uint64_t Long() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 8) {
      value |= uint64_t{Byte()} << shift;
    }
    return value;
  }

  // A number near the limits that rules check; the first byte selects its kind.
  //   00 to 3f  itself                              b0 to bf  the last ones below 2^64
  //   40 to 7f  this many pages                       c0 to cf  the last ones below 2^32
  //   80 to af  this many pages plus a byte      d0 to ff  any; eight bytes follow
  uint64_t Number() {
    const uint64_t kind = Byte();
    if (kind < 0x40) {
      return kind;
    }
    if (kind < 0x80) {
      return (kind - 0x40) * kNdkPageBytes;
    }
    if (kind < 0xb0) {
      return (kind - 0x80) * kNdkPageBytes + Byte();
    }
    if (kind < 0xc0) {
      return UINT64_MAX - (kind - 0xb0);
    }
    return kind < 0xd0 ? UINT32_MAX - (kind - 0xc0) : Long();
  }

  // At most `count` of the next bytes, valid as long as the input.
  std::span<const uint8_t> Bytes(size_t count) {
    const std::span<const uint8_t> bytes = rest_.first(std::min(count, rest_.size()));
    rest_ = rest_.subspan(bytes.size());
    return bytes;
  }
  std::string Text(size_t count) {
    const std::span<const uint8_t> bytes = Bytes(count);
    return {bytes.begin(), bytes.end()};
  }

 private:
  std::span<const uint8_t> rest_;
};

// The whole input as text.
inline std::string_view AsText(const uint8_t* bytes, size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

}  // namespace rnicd::fuzz
