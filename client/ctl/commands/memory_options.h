#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cpp/client.h"
#include "client/ctl/line/command_line.h"
#include "client/ctl/line/units.h"

namespace rnicd::ctl {

// Options of alloc and register.
struct MemoryOptions {
  AllocateOptions memory;
  // Import a memfd of this process instead of allocating.
  bool import = false;
  // Number of regions, of equal size; 0 for alloc.
  uint64_t regions = 0;
  uint32_t flags = 0;
  std::string adapter_name;
  std::string label;
  // Secret of a grant; empty: from the environment.
  std::string grant;
  HoldTime hold;
  // Begin anew when the session ends or the daemon is away.
  bool reconnect = false;
};

// Errors: UsageError.
absl::StatusOr<MemoryOptions> AllocOptionsFrom(const CommandLine& line);
absl::StatusOr<MemoryOptions> RegisterOptionsFrom(const CommandLine& line);

// Splits the bytes into `count` parts that begin on 4 KiB pages; the last part takes the remainder. `count` is at least
// 1 and at most the number of pages.
std::vector<std::span<const std::byte>> SplitEvenly(std::span<const std::byte> bytes, uint64_t count);

}  // namespace rnicd::ctl
