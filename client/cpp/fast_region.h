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
  // Pages of 4 KiB that one FastRegister may name at most; at least 1.
  uint32_t max_pages = 0;
  // Needed when a FastRegister is to grant a remote right.
  bool remote_access = false;
};

// A region that work requests register pages with, again and again: WorkChain::FastRegister and Invalidate. Nothing is
// reachable through it in between.
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

  // 0 for one that is closed or moved from; likewise the token.
  MemoryRegionId id() const;
  // For SGEs of this process; the same for the region's life, and works only while pages are registered.
  LocalToken local_token() const;
  // Asks for the token of the last FastRegister that was posted; PostOutcome has it too. It changes with each.
  // Errors: OBJECT_NOT_FOUND.
  absl::StatusOr<RemoteToken> GetRemoteToken() const;

  // What the destructor does, with its outcome, within ClientOptions::call_deadline. Errors: OBJECT_NOT_FOUND for one
  // that is closed or moved from.
  absl::Status Close();

 private:
  struct Open;

  explicit FastRegion(std::shared_ptr<Open> open) : open_(std::move(open)) {}

  // Null when moved from or closed.
  std::shared_ptr<Open> open_;
};

}  // namespace rnicd::inline client
