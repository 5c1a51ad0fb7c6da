#pragma once

#include <cstdint>
#include <string>

namespace rnicd::pipes {

enum class Door : uint8_t { kWorkload, kOperator };

inline constexpr Door kDoors[] = {Door::kWorkload, Door::kOperator};

// Names of the pipes; others only in tests.
struct PipeNames {
  std::string workloads = R"(\\.\pipe\rnicd)";
  std::string operators = R"(\\.\pipe\rnicd-admin)";

  const std::string& Of(Door door) const { return door == Door::kOperator ? operators : workloads; }
};

}  // namespace rnicd::pipes
