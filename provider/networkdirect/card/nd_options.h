#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace rnicd::provider {

// Method of fast registrations.
enum class NdFastEngine : uint8_t {
  // A memory window where one can express the registration, otherwise a registration.
  kAuto,
  // Always a registration, which works on every queue pair of its domain.
  kRegistration,
};

struct NetworkDirectOptions {
  // Absolute path of the library of a card's manufacturer; empty: all that the system's catalogue lists.
  std::string library;
  NdFastEngine fast_engine = NdFastEngine::kAuto;
  // Maximum size of a registration, in bytes; the card's own limit applies if it is lower.
  uint64_t max_registration_bytes = uint64_t{1} << 40;
  // Maximum number of memory regions on one card; 0 means the card's own limit. A registration of several pieces of
  // memory takes one for each.
  uint64_t max_regions = 0;
  // Maximum number of pieces of one registration, and of a fast registration that no window can express.
  uint32_t max_pieces = 1024;
  // Maximum pages of a fast registration.
  uint32_t max_fast_register_pages = 32768;
  // NDK_ADAPTER_FLAG_ bits that cards report and obey, limited to those of the card and of the provider.
  uint32_t adapter_flags = UINT32_MAX;
  // Timeout for a card to return the outstanding requests of a failed queue pair.
  std::chrono::milliseconds card_timeout{5000};
};

}  // namespace rnicd::provider
