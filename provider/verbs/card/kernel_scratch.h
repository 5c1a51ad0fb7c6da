#pragma once

#include <cstdint>
#include <vector>

#include "base/ndk/access_rights.h"
#include "base/units.h"
#include "kernel/rnicd_fr/rnicd_fr.h"

namespace rnicd::provider {

class KernelFastRegion;

// Buffers in which a chain of the kernel's requests is composed. Kept for the next chain: lists of pages are long, and
// this daemon also wipes the memory that it frees.
// Threads: one at a time.
struct KernelScratch {
  struct Step {
    KernelFastRegion* region = nullptr;
    bool registers = false;
    uint32_t token = 0;
    // The range of a registration.
    VirtualAddress base;
    uint64_t length = 0;
    AccessRights rights;
  };

  std::vector<Step> steps;
  std::vector<rnicd_fr_op> ops;
  std::vector<rnicd_fr_run> runs;
  // The error of each step.
  std::vector<int> errors;

  // Longer lists are not kept.
  static constexpr size_t kRunsKept = 32768;
  void Clear() {
    steps.clear();
    ops.clear();
    errors.clear();
    if (runs.capacity() > kRunsKept) {
      runs = {};
    }
    runs.clear();
  }
};

}  // namespace rnicd::provider
