#include "daemon/metrics/names.h"

#include <algorithm>
#include <cctype>

namespace rnicd::metrics {

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  return lower;
}

bool InBytes(core::Resource resource) { return core::ResourceName(resource).ends_with("_bytes"); }

}  // namespace rnicd::metrics
