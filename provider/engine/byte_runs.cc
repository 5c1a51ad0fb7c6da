#include "provider/engine/byte_runs.h"

#include <algorithm>

namespace rnicd::provider {

std::vector<std::span<std::byte>> JoinRuns(std::span<const std::span<std::byte>> runs) {
  std::vector<std::span<std::byte>> joined;
  for (const std::span<std::byte> run : runs) {
    if (run.empty()) {
      continue;
    }
    if (!joined.empty() && joined.back().data() + joined.back().size() == run.data()) {
      joined.back() = {joined.back().data(), joined.back().size() + run.size()};
    } else {
      joined.push_back(run);
    }
  }
  return joined;
}

std::vector<std::span<std::byte>> SliceRuns(std::span<const std::span<std::byte>> runs, uint64_t offset,
                                            uint64_t length) {
  std::vector<std::span<std::byte>> slice;
  for (const std::span<std::byte> run : runs) {
    if (length == 0) {
      break;
    }
    if (offset >= run.size()) {
      offset -= run.size();
      continue;
    }
    const uint64_t count = std::min<uint64_t>(run.size() - offset, length);
    slice.push_back(run.subspan(offset, count));
    length -= count;
    offset = 0;
  }
  return slice;
}

}  // namespace rnicd::provider
