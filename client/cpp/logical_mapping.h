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
//           addresses are dead then for new requests. Pages that a fast registration still uses stay mapped and charged
//           until that ends; a Memory given back before that is refused (MEMORY_IN_USE) and stays the session's. So end
//           the registration first: declaring memory, mapping and region in this order does it.
//           A moved-from mapping has no pages and may be destroyed or assigned.
// Threads:  const methods are safe from several threads.
// Errors:   LENGTH_ZERO, MDL_*, MEMORY_NOT_SEALED, PAGE_COUNT_UNSUPPORTED, QUOTA_LOGICAL_MAPPINGS, QUOTA_PINNED_BYTES;
//           transport failures.
// Source:   NDK_FN_BUILD_LAM, NDK_FN_RELEASE_LAM.
class LogicalMapping {
 public:
  // All of the memory.
  static absl::StatusOr<LogicalMapping> Build(const Memory& memory);
  // The part of the memory. Errors besides: MDL_RANGE_OUTSIDE_MEMORY, found here.
  static absl::StatusOr<LogicalMapping> Build(const Memory& memory, std::span<const std::byte> part);
  // `length` bytes from the first entry's address on. Entries without owner need their Memory kept by the caller.
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
  // All of it, in order, at the first entry's address.
  FastRegistration AsRegistration() const;

  // What the destructor does, with its outcome, within ClientOptions::call_deadline. Errors: OBJECT_NOT_FOUND for one
  // that is released or moved from.
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
