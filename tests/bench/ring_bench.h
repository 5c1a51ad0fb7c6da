#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/process/daemon_process.h"

// The parts of rnicd_ring_bench. Each prints a table.
namespace rnicd::bench {

enum class Cores : uint8_t {
  // Client and daemon share core 0, and nobody spins.
  kOne,
  // The client on core 0, the daemon on core 1; both spin.
  kTwo,
};

const char* TitleOf(Cores cores);
std::chrono::microseconds SpinOf(Cores cores);
// Pins the calling process, too.
std::unique_ptr<test::DaemonProcess> StartDaemon(Cores cores);
// With the daemon's own choices, on all cores.
std::unique_ptr<test::DaemonProcess> StartDaemon(std::vector<std::string> flags);

int LiveRegions();
int Crowd();
// One client of the crowd; the program starts itself.
int CrowdMember(const std::string& socket_dir);

}  // namespace rnicd::bench
