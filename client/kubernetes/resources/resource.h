#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace rnicd::kubernetes {

// One extended resource of the node: memory in units of one size.
struct ResourceSpec {
  // "rnicd.io/memory-64mi": a DNS name, a slash and a type of at most 63 letters, digits, "-", "_" and ".".
  std::string name;
  // Pinned bytes of one device; a multiple of 4096.
  uint64_t unit_bytes = 0;
  // Number of devices; 0: as many as fit into an equal share of what fixed counts leave of the pool.
  uint64_t count = 0;

  friend bool operator==(const ResourceSpec&, const ResourceSpec&) = default;
};

// Parses "rnicd.io/memory-64mi=64MiB,rnicd.io/memory-1gi=1GiB:16": name, unit and, after a colon, a fixed count.
// Errors: kInvalidArgument, with text for people: which part is wrong and why.
absl::StatusOr<std::vector<ResourceSpec>> ParseResources(std::string_view text);

// The part after the slash: "memory-64mi".
std::string_view TypeOf(std::string_view resource_name);

}  // namespace rnicd::kubernetes
