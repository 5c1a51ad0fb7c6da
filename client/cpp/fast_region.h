#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "base/strong_id.h"
#include "base/units.h"

namespace rnicd::inline client {

class Client;

struct FastRegionOptions {
  // Maximum number of 4 KiB pages in one FastRegister; at least 1.
  uint32_t max_pages = 0;
  // Whether a FastRegister may grant remote rights.
  bool remote_access = false;
};

// A region that work requests use to register pages repeatedly: WorkChain::FastRegister and Invalidate. Between
// registrations it gives no access to any memory.
//
// Lifetime: keeps the session. The destructor ends a registration and closes within ClientOptions::release_deadline;
//           it waits for posted requests that name the region, so those should be complete or flushed before. A
//           moved-from region is closed and may be destroyed or assigned.
// Threads:  const methods are safe from several threads.
// Errors:   FIELD_OUT_OF_RANGE (max_pages 0), PAGE_COUNT_UNSUPPORTED, QUOTA_REGIONS, QUOTA_FAST_REGISTER_PAGES,
//           DEVICE_OUT_OF_RESOURCES; transport failures. After a failure nothing is left behind.
// Source:   NDK_FN_CREATE_MR, NDK_FN_INITIALIZE_FAST_REGISTER_MR.
class FastRegion {
 public:
  static absl::StatusOr<FastRegion> Create(const Client& client, const FastRegionOptions& options);

  FastRegion(FastRegion&&) noexcept = default;
  FastRegion& operator=(FastRegion&&) noexcept = default;

  // Id of the region; 0 when closed or moved from, as is the token.
  MemoryRegionId id() const;
  // For SGEs of this process; constant for the region's life, and valid only while pages are registered.
  LocalToken local_token() const;
  // Asks the daemon for the token of the last posted FastRegister; PostOutcome has it too. Each FastRegister changes
  // it.
  // Errors: OBJECT_NOT_FOUND.
  absl::StatusOr<RemoteToken> GetRemoteToken() const;

  // Does what the destructor does and returns the outcome, within ClientOptions::call_deadline. Errors:
  // OBJECT_NOT_FOUND when closed or moved from.
  absl::Status Close();

 private:
  struct Open;

  explicit FastRegion(std::shared_ptr<Open> open) : open_(std::move(open)) {}

  // Null when moved from or closed.
  std::shared_ptr<Open> open_;
};

}  // namespace rnicd::inline client
