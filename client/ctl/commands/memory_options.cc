#include "client/ctl/commands/memory_options.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "client/admin/amounts.h"
#include "client/ctl/line/common_options.h"
#include "client/ctl/line/units.h"

namespace rnicd::ctl {
namespace {

// Maximum number of items in one batch.
constexpr uint64_t kRegionsMax = 16'384;

absl::Status ReadMemory(const CommandLine& line, AllocateOptions& memory) {
  const std::optional<std::string> size = line.Value("--size");
  if (!size.has_value()) {
    return UsageError("option --size is missing");
  }
  const std::optional<uint64_t> size_bytes = ParseSize(*size);
  if (!size_bytes.has_value() || *size_bytes == 0) {
    return BadValue("--size", *size, "a size such as 4096, 64KiB, 64MiB or 1GiB");
  }
  memory.size = *size_bytes;
  const std::string page_size = line.Value("--page-size").value_or("auto");
  static constexpr std::pair<std::string_view, PageSize> kPageSizes[] = {
      {"auto", PageSize::kAuto}, {"4KiB", PageSize::k4KiB}, {"2MiB", PageSize::k2MiB}, {"1GiB", PageSize::k1GiB}};
  const auto* const found = std::ranges::find(kPageSizes, page_size, &std::pair<std::string_view, PageSize>::first);
  if (found == std::end(kPageSizes)) {
    return BadValue("--page-size", page_size, "auto, 4KiB, 2MiB or 1GiB");
  }
  memory.page_size = found->second;
  if (const std::optional<std::string> node = line.Value("--numa-node")) {
    const std::optional<uint64_t> number = ParseNumber(*node, std::numeric_limits<uint32_t>::max());
    if (!number.has_value()) {
      return BadValue("--numa-node", *node, "a number");
    }
    memory.numa_node = static_cast<uint32_t>(*number);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<MemoryOptions> AllocOptionsFrom(const CommandLine& line) {
  MemoryOptions options;
  RNICD_RETURN_IF_ERROR(ReadMemory(line, options.memory));
  const std::string hold = line.Value("--hold").value_or("0s");
  const std::optional<HoldTime> hold_time = ParseHoldTime(hold);
  if (!hold_time.has_value()) {
    return BadValue("--hold", hold, "a duration such as 500ms, 2s, 5m, or forever");
  }
  options.hold = *hold_time;
  options.label = line.Value("--label").value_or("rnicctl");
  options.grant = GrantOf(line);
  return options;
}

absl::StatusOr<MemoryOptions> RegisterOptionsFrom(const CommandLine& line) {
  RNICD_ASSIGN_OR_RETURN(MemoryOptions options, AllocOptionsFrom(line));
  options.import = line.Has("--import");
  if (options.import && options.memory.numa_node.has_value()) {
    return UsageError("options --import and --numa-node exclude each other");
  }
  const std::string flags = line.Value("--flags").value_or("remote-read,remote-write");
  const std::optional<uint32_t> bits = ParseMrFlags(flags);
  if (!bits.has_value()) {
    return BadValue("--flags", flags, "a list of local-write, remote-read, remote-write, read-sink, or none");
  }
  options.flags = *bits;
  const std::string regions = line.Value("--regions").value_or("1");
  const std::optional<uint64_t> count = ParseNumber(regions, kRegionsMax);
  if (!count.has_value() || *count == 0) {
    return BadValue("--regions", regions, "a number from 1 to " + std::to_string(kRegionsMax));
  }
  if (*count > 1 && *count > options.memory.size / kNdkPageBytes) {
    return BadValue("--regions", regions, "at most one region per 4 KiB page of --size");
  }
  options.regions = *count;
  options.adapter_name = line.Value("--adapter").value_or("");
  options.reconnect = line.Has("--reconnect");
  return options;
}

std::vector<std::span<const std::byte>> SplitEvenly(std::span<const std::byte> bytes, uint64_t count) {
  const uint64_t part = bytes.size() / count / kNdkPageBytes * kNdkPageBytes;
  std::vector<std::span<const std::byte>> parts;
  for (uint64_t index = 0; index + 1 < count; ++index) {
    parts.push_back(bytes.subspan(index * part, part));
  }
  parts.push_back(bytes.subspan((count - 1) * part));
  return parts;
}

}  // namespace rnicd::ctl
