#pragma once

#include <fstream>
#include <string>
#include <vector>

#include "ring/layout.h"

namespace rnicd::test {

// The headers of the rings that this process has mapped. No other thread may unmap anything meanwhile.
inline std::vector<ring::RingHeader*> MappedRings() {
  std::vector<ring::RingHeader*> rings;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find(" rw-s ") != std::string::npos && line.find("/memfd:rnicd-memory") != std::string::npos) {
      auto* const header = reinterpret_cast<ring::RingHeader*>(std::stoull(line, nullptr, 16));
      if (header->description.magic == ring::kRingMagic) {
        rings.push_back(header);
      }
    }
  }
  return rings;
}

}  // namespace rnicd::test
