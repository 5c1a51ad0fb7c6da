#include "client/ctl/trials/demo_pages.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <utility>

#include "base/units.h"

namespace rnicd::ctl {
namespace {

std::string Hex(std::byte byte) {
  std::string text(4, '\0');
  std::snprintf(text.data(), text.size() + 1, "0x%02x", std::to_integer<unsigned>(byte));
  return text;
}

}  // namespace

std::vector<size_t> ShuffledOrder(size_t count, uint64_t seed) {
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  // Implemented here, since std::shuffle may differ between libraries and the printed seed must mean the same
  // everywhere.
  std::mt19937_64 random(seed);
  for (size_t left = count; left > 1; --left) {
    std::swap(order[left - 1], order[random() % left]);
  }
  return order;
}

size_t CountPieces(std::span<const size_t> order) {
  size_t pieces = order.empty() ? 0 : 1;
  for (size_t index = 1; index < order.size(); ++index) {
    pieces += order[index] != order[index - 1] + 1 ? 1 : 0;
  }
  return pieces;
}

void FillPattern(std::span<std::byte> bytes, uint64_t seed) {
  // An odd factor makes all words of 2^64 steps different.
  constexpr uint64_t kStep = 0x9E3779B97F4A7C15;
  uint64_t word = seed * kStep + 1;
  for (size_t offset = 0; offset + sizeof(word) <= bytes.size(); offset += sizeof(word)) {
    std::memcpy(&bytes[offset], &word, sizeof(word));
    word += kStep;
  }
}

absl::Status CheckPattern(std::span<const std::byte> memory, std::span<const size_t> order, uint64_t seed) {
  std::vector<std::byte> expected(kNdkPageBytes);
  for (size_t index = 0; index < order.size(); ++index) {
    // The pattern of a seed, begun at its word n, is that of the seed plus n.
    FillPattern(expected, seed + index * (kNdkPageBytes / sizeof(uint64_t)));
    const auto found = memory.subspan(order[index] * kNdkPageBytes, kNdkPageBytes);
    const auto differing = std::mismatch(expected.begin(), expected.end(), found.begin());
    if (differing.first != expected.end()) {
      return absl::InternalError("byte " + std::to_string(differing.first - expected.begin()) + " of page " +
                                 std::to_string(order[index]) + " is " + Hex(*differing.second) + " instead of " +
                                 Hex(*differing.first));
    }
  }
  return absl::OkStatus();
}

}  // namespace rnicd::ctl
