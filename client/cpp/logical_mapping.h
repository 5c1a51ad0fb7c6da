#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "base/strong_id.h"
#include "base/units.h"
#include "client/cpp/memory.h"
#include "client/cpp/work_chain.h"

namespace rnicd::inline client {

// The pages behind a range of Memory, as the adapter names them: for FastRegister, and for SGEs with the privileged
// token.
//
// Lifetime: keeps its Memory and the session. The destructor releases it within ClientOptions::release_deadline; its
//           addresses are then invalid for new requests. Pages that a fast registration still uses stay mapped and
//           charged until that ends; releasing the Memory before that is refused (MEMORY_IN_USE), and the session keeps
//           it. So end the registration first: declaring memory, mapping and region in this order does it.
//           A moved-from mapping has no pages and may be destroyed or assigned.
// Threads:  const methods are safe from several threads.
// Errors:   LENGTH_ZERO, MDL_*, MEMORY_NOT_SEALED, PAGE_COUNT_UNSUPPORTED, QUOTA_LOGICAL_MAPPINGS, QUOTA_PINNED_BYTES;
//           transport failures.
// Source:   NDK_FN_BUILD_LAM, NDK_FN_RELEASE_LAM.
class LogicalMapping {
 public:
  // Maps all of the memory.
  static absl::StatusOr<LogicalMapping> Build(const Memory& memory);
  // Maps a part of the memory. Further errors: MDL_RANGE_OUTSIDE_MEMORY, detected by this library.
  static absl::StatusOr<LogicalMapping> Build(const Memory& memory, std::span<const std::byte> part);
  // Maps `length` bytes starting at the first entry's address. For entries without owner the caller must keep the
  // Memory.
  static absl::StatusOr<LogicalMapping> BuildChain(const Client& client, std::span<const MdlEntry> chain,
                                                   uint64_t length);

  LogicalMapping(LogicalMapping&&) noexcept = default;
  LogicalMapping& operator=(LogicalMapping&&) noexcept = default;

  LogicalMappingId id() const;
  // The logical address of each 4 KiB page that the range touches, in order. Need not be consecutive.
  std::span<const LogicalAddress> pages() const;
  // Bytes into the first page at which the range begins.
  uint32_t fbo() const;
  // Bytes.
  uint64_t length() const;
  // A registration of the whole mapping, in order, at the first entry's address.
  FastRegistration AsRegistration() const;

  // Does what the destructor does and returns the outcome, within ClientOptions::call_deadline. Errors:
  // OBJECT_NOT_FOUND when released or moved from.
  absl::Status Release();

 private:
  struct Built;

  explicit LogicalMapping(std::shared_ptr<Built> built) : built_(std::move(built)) {}

  static absl::StatusOr<LogicalMapping> BuildOn(std::shared_ptr<Connection> connection, std::span<const MdlEntry> chain,
                                                uint64_t length);

  // Null when moved from or released.
  std::shared_ptr<Built> built_;
};

}  // namespace rnicd::inline client
