#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "provider/api/queue_pair.h"

namespace rnicd::core {

// Why pages are registered: by a region, or by a logical address mapping.
enum class PageUse : uint8_t { kRegion, kMapping };

// Objects held by a set of sessions, added up for display.
struct Holdings {
  struct Pages {
    std::string adapter;
    PageUse use = PageUse::kRegion;
    // Size in bytes of the smallest page behind the range.
    uint64_t page_bytes = 0;
    // Number of pages of kNdkPageBytes.
    uint64_t count = 0;
  };
  struct Regions {
    std::string adapter;
    bool fast_register = false;
    uint64_t count = 0;
  };
  struct QueuePairs {
    std::string adapter;
    QueuePairState state = QueuePairState::kInit;
    uint64_t count = 0;
  };

  void AddPages(std::string_view adapter, PageUse use, uint64_t page_bytes, uint64_t count);
  void AddRegion(std::string_view adapter, bool fast_register);
  void AddQueuePair(std::string_view adapter, QueuePairState state);

  // A few rows in each: adapters times page sizes, kinds and states.
  std::vector<Pages> pages;
  std::vector<Regions> regions;
  std::vector<QueuePairs> queue_pairs;
};

}  // namespace rnicd::core
