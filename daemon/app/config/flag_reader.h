#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/flags/flag.h"

namespace rnicd::app {

// Without upper bound.
inline constexpr int64_t kUnbounded = INT64_MAX;
inline constexpr int64_t kTenMinutesMs = 600000;
inline constexpr int64_t kOneHourMs = 3600000;
// What every client may rely on: bytes of a registration, pages of a fast registration.
inline constexpr int64_t kRegistrationBytesMin = 4096;
inline constexpr int64_t kFastRegisterPagesMin = 16;

// Collects errors while the flags are read one by one: a line for each, which begins "--flag: must".
class FlagReader {
 public:
  explicit FlagReader(std::vector<std::string>& errors) : errors_(errors) {}

  uint64_t Number(const absl::Flag<int64_t>& flag, int64_t lowest, int64_t highest);
  // A count for which 0 means no limit.
  uint64_t Limit(const absl::Flag<int64_t>& flag) { return Number(flag, 0, kUnbounded); }
  std::chrono::milliseconds Milliseconds(const absl::Flag<int64_t>& flag, int64_t lowest, int64_t highest);
  // Bits of `known`, in decimal or hexadecimal.
  uint32_t Bits(const absl::Flag<std::string>& flag, uint32_t known);
  // An absolute path, clean (base/files/paths.h), or none.
  std::string AbsolutePath(const absl::Flag<std::string>& flag);
  // Whether a file of this path exists, asked at each call; null without a path.
  std::function<bool()> PresenceOf(const absl::Flag<std::string>& flag);
  // A file mode, octal.
  uint32_t Mode(const absl::Flag<std::string>& flag);
  // Words separated by commas; none for the empty text.
  std::vector<std::string> Names(const absl::Flag<std::string>& flag);

  void AddError(const std::string& flag, const std::string& what);

 private:
  std::vector<std::string>& errors_;
};

}  // namespace rnicd::app
