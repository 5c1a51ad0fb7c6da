#include "daemon/app/host/raised_limits.h"

#include <cstdint>
#include <optional>

#include "daemon/core/tenant/grant_table.h"

namespace rnicd::app {
namespace {

// A connection takes its socket and its process; the rest is for everything else.
constexpr uint64_t kDescriptorsPerConnection = 2;
// Its two listeners.
constexpr uint64_t kDescriptorsPerDoor = 2;
constexpr uint64_t kOtherDescriptors = 128;

}  // namespace

void RaiseLimits(const Config& config, ProcessHost& host, const log::Logger& logger) {
  // As many connections again at doors.
  const uint64_t wanted = 2 * config.connections.max * kDescriptorsPerConnection +
                          core::kMaxGrants * kDescriptorsPerDoor + kOtherDescriptors;
  if (const std::optional<uint64_t> limit = host.RaiseDescriptorLimit(wanted); limit.has_value()) {
    logger.Warning("the descriptor limit is below what max_connections may need",
                   {{"limit", *limit}, {"wanted", wanted}});
  }
  if (const std::optional<uint64_t> limit = host.RaiseFileSizeLimit(); limit.has_value()) {
    logger.Warning("the limit of file sizes also holds for each memory object", {{"limit", *limit}});
  }
}

}  // namespace rnicd::app
