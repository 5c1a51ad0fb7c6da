#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace rnicd::metrics {

// The kernel's statistics of a card's port.
struct PortStatistics {
  // State of the port: "active", or "unknown" when it cannot be read; see kPortStates.
  std::string state = "unknown";
  // Counts of the folders counters and hw_counters, by name; a name in both occurs once.
  std::vector<std::pair<std::string, uint64_t>> counts;
};

inline constexpr const char* kPortStates[] = {"down", "init", "armed", "active", "active_defer", "unknown"};

// `folder`: as AdapterDescription::port_folder. Files that do not contain a number are omitted.
// Source: the kernel's Documentation/ABI/stable/sysfs-class-infiniband.
PortStatistics ReadPortStatistics(const std::string& folder);

}  // namespace rnicd::metrics
