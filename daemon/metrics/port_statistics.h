#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace rnicd::metrics {

// What the kernel says of a card's port.
struct PortStatistics {
  // "active", or "unknown" when it cannot be read; see kPortStates.
  std::string state = "unknown";
  // Of the folders counters and hw_counters, by name; one that is in both is told once.
  std::vector<std::pair<std::string, uint64_t>> counts;
};

inline constexpr const char* kPortStates[] = {"down", "init", "armed", "active", "active_defer", "unknown"};

// `folder`: as AdapterDescription::port_folder. Files that hold no number are left out.
// Source: the kernel's Documentation/ABI/stable/sysfs-class-infiniband.
PortStatistics ReadPortStatistics(const std::string& folder);

}  // namespace rnicd::metrics
