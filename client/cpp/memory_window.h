#pragma once

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "base/strong_id.h"
#include "base/units.h"

namespace rnicd::inline client {

class Client;

// A second, narrower remote token for a part of a MemoryRegion, opened and closed by work requests: WorkChain::Bind and
// Invalidate. It works only through the queue pair it was bound on.
//
// Lifetime: keeps the session. The destructor ends the binding and closes within ClientOptions::release_deadline. Must
//           be destroyed before the MemoryRegion it was bound to, whose close waits for it. A moved-from window is
//           closed and may be destroyed or assigned.
// Threads:  const methods are safe from several threads.
// Errors:   QUOTA_WINDOWS, DEVICE_OUT_OF_RESOURCES; transport failures.
// Source:   NDK_FN_CREATE_MW.
class MemoryWindow {
 public:
  static absl::StatusOr<MemoryWindow> Create(const Client& client);

  MemoryWindow(MemoryWindow&&) noexcept = default;
  MemoryWindow& operator=(MemoryWindow&&) noexcept = default;

  // Id of the window; 0 for one that is closed or moved from.
  MemoryWindowId id() const;
  // Asks the daemon for the token of the last posted Bind; PostOutcome has it too. Errors: WINDOW_NOT_BOUND,
  // OBJECT_NOT_FOUND.
  absl::StatusOr<RemoteToken> GetRemoteToken() const;

  // Does what the destructor does and returns the outcome, within ClientOptions::call_deadline. Errors:
  // OBJECT_NOT_FOUND when closed or moved from.
  absl::Status Close();

 private:
  struct Open;

  explicit MemoryWindow(std::shared_ptr<Open> open) : open_(std::move(open)) {}

  // Null when moved from or closed.
  std::shared_ptr<Open> open_;
};

}  // namespace rnicd::inline client
