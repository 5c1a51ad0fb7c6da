#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace rnicd::c {

// Bytes of a caller's struct that this library knows too. The struct begins with its size.
// Errors: FIELD_OUT_OF_RANGE for a null pointer, or a size that has no room for itself; FIELD_OUT_OF_RANGE as E2BIG for
// bytes behind `known` that are not zero.
absl::StatusOr<size_t> CommonBytes(const void* given, size_t known, std::string_view name);

// A copy of the caller's struct; what it does not have is zero. Errors: as CommonBytes.
template <typename Struct>
absl::StatusOr<Struct> Take(const Struct* given, std::string_view name) {
  const absl::StatusOr<size_t> bytes = CommonBytes(given, sizeof(Struct), name);
  if (!bytes.ok()) {
    return bytes.status();
  }
  Struct own = {};
  std::memcpy(&own, given, *bytes);
  return own;
}

// The same where a null pointer means all defaults.
template <typename Struct>
absl::StatusOr<Struct> TakeOptional(const Struct* given, std::string_view name) {
  return given != nullptr ? Take(given, name) : absl::StatusOr<Struct>(Struct{});
}

// Copies results to the caller's struct, of which only `size` is read. Errors: as CommonBytes; then nothing is written.
template <typename Struct>
absl::Status Fill(const Struct& own, Struct* to, std::string_view name) {
  const absl::StatusOr<size_t> bytes = CommonBytes(to, sizeof(Struct), name);
  if (bytes.ok()) {
    constexpr size_t kSizeBytes = sizeof(own.size);
    std::memcpy(reinterpret_cast<std::byte*>(to) + kSizeBytes, reinterpret_cast<const std::byte*>(&own) + kSizeBytes,
                *bytes - kSizeBytes);
  }
  return bytes.status();
}

}  // namespace rnicd::c
