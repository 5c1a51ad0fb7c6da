#pragma once

#include <cstdint>
#include <string>

namespace rnicd::soak {

struct SoakOptions {
  double minutes = 2;
  // Processes at the same time.
  uint64_t clients = 40;
  uint64_t seed = 1;
  // Where the report goes; empty: none.
  std::string report;
  // Plants a fault that the judge must find: "session" keeps one open where nothing may be. Empty: none.
  std::string canary;
};

// Runs it all. The exit status: 0 only when nothing was wrong.
int Soak(const SoakOptions& options);

}  // namespace rnicd::soak
