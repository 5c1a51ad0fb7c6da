#pragma once

#include <cstdint>
#include <string>

namespace rnicd::soak {

struct SoakOptions {
  double minutes = 2;
  // Number of concurrent processes.
  uint64_t clients = 40;
  uint64_t seed = 1;
  // Path of the report; empty: none.
  std::string report;
  // Plants a leak that the leak check must find: "session" keeps one open when none may be. Empty: none.
  std::string canary;
};

// Runs the soak. Returns the exit status: 0 only if there was no error.
int Soak(const SoakOptions& options);

}  // namespace rnicd::soak
