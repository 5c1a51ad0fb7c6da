#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ndk/access_rights.h"
#include "base/ndk/registration.h"
#include "base/strong_id.h"
#include "base/units.h"
#include "client/cpp/memory.h"

namespace rnicd::inline client {

struct Provisioned;

// Bytes of a Memory that become a region.
struct RegionRange {
  // Bytes from the start of the memory.
  uint64_t offset = 0;
  uint64_t length = 0;
  // kMrFlag values combined by OR.
  uint32_t flags = 0;
};

// The adapter's right to use a range of Memory: a registered NDK memory region.
//
// `flags` are kMrFlag values of base/ndk/access_rights.h combined by OR; 0 allows local reads only.
// Lifetime: keeps its Memory and the session. The destructor deregisters and closes within
//           ClientOptions::release_deadline. A moved-from region is not registered and may be destroyed or assigned.
// Threads:  const methods are safe from several threads, the others are not. Callbacks run on librnicd's thread, in
//           Client::Progress, or on the caller's before the call returns; they must not block for long, but may use
//           and drop any object.
// Errors:   registering: LENGTH_ZERO, LENGTH_ABOVE_ADAPTER_LIMIT, MDL_*, FLAGS_*, QUOTA_REGIONS, QUOTA_PINNED_BYTES,
//           DEVICE_OUT_OF_RESOURCES, DEVICE_FAILED; transport failures. After a failure nothing is left behind.
// Source:   NDK_FN_CREATE_MR, NDK_FN_REGISTER_MR, NDK_FN_DEREGISTER_MR.
class MemoryRegion {
 public:
  using RegisterCallback = std::function<void(absl::StatusOr<MemoryRegion>)>;
  using Outcomes = std::vector<absl::StatusOr<MemoryRegion>>;
  using CloseCallback = std::function<void(absl::Status)>;

  // Registers all of the memory, at its address in this process.
  static absl::StatusOr<MemoryRegion> Register(const Memory& memory, uint32_t flags);
  // Registers a part of the memory. Further errors: MDL_RANGE_OUTSIDE_MEMORY, detected by this library.
  static absl::StatusOr<MemoryRegion> Register(const Memory& memory, std::span<const std::byte> part, uint32_t flags);
  // Registers `length` bytes starting at the first entry's address. For entries without owner the caller must keep the
  // Memory.
  static absl::StatusOr<MemoryRegion> RegisterChain(const Client& client, std::span<const MdlEntry> chain,
                                                    uint64_t length, uint32_t flags);

  // Registers every part as a separate region, in two RPCs whatever their number (at most 16384). Returns one outcome
  // per part, in order; a failure does not stop the parts after it. A status instead of outcomes means that none is
  // registered.
  static absl::StatusOr<Outcomes> RegisterBatch(const Memory& memory, std::span<const std::span<const std::byte>> parts,
                                                uint32_t flags);
  // Allocates memory and registers ranges of it, in two RPCs whatever their number (at most 16384): from nothing to
  // tokens. Where large ranges take longer than ClientOptions::call_deadline, it fails, the daemon closes what it has
  // registered, and the memory is released. Errors: as Memory::Allocate, and as the next.
  static absl::StatusOr<Provisioned> Provision(const Client& client, const AllocateOptions& options,
                                               std::span<const RegionRange> ranges);
  // Registers ranges of the memory in one RPC. Returns one outcome per range, in order; a failure does not stop the
  // ranges after it. A status instead of outcomes means that none is registered: BATCH_SIZE, QUOTA_PENDING_REQUESTS,
  // transport failures.
  static absl::StatusOr<Outcomes> Provision(const Memory& memory, std::span<const RegionRange> ranges);
  // Closes the regions in one RPC. Returns the status of the first failure, or ok; all objects are closed either way.
  static absl::Status CloseBatch(std::vector<MemoryRegion> regions);

  // Does not wait for a registration that the daemon completes asynchronously. `callback` is called exactly once.
  static void RegisterAsync(const Memory& memory, std::span<const std::byte> part, uint32_t flags,
                            RegisterCallback callback);
  // Closes without waiting; deregisters first. Both tokens are invalid when `callback` is called with ok.
  static void CloseAsync(MemoryRegion region, CloseCallback callback);

  MemoryRegion(MemoryRegion&& other) noexcept;
  MemoryRegion& operator=(MemoryRegion&& other) noexcept;
  ~MemoryRegion();

  MemoryRegionId id() const { return id_; }
  // False once deregistered, closed or moved from; then all other values are 0.
  bool registered() const { return registered_; }
  VirtualAddress base_address() const { return registration_.base_address; }
  // Bytes.
  uint64_t length() const { return registration_.length; }
  LocalToken local_token() const { return registration_.local_token; }
  RemoteToken remote_token() const { return registration_.remote_token; }

  // Both tokens are invalid on success. Errors: REGION_NOT_REGISTERED, REGION_BUSY, DEVICE_FAILED.
  absl::Status Deregister();
  // Does what the destructor does and returns the outcome, within ClientOptions::call_deadline. On failure the region
  // stays. Errors: OBJECT_NOT_FOUND when closed or moved from.
  absl::Status Close();

 private:
  MemoryRegion(std::shared_ptr<Connection> connection, MemoryRegionId id)
      : connection_(std::move(connection)), id_(id) {}

  // CreateMr in the connection's protection domain.
  static absl::StatusOr<MemoryRegion> Create(std::shared_ptr<Connection> connection);
  static absl::StatusOr<Outcomes> CreateBatch(const std::shared_ptr<Connection>& connection, size_t count);
  // RegisterMr, waiting for it.
  absl::Status RegisterNow(std::span<const MdlEntry> chain, uint64_t length, uint32_t flags);
  // Stores the result of a successful registration.
  void Adopt(const Registration& registration, std::span<const MdlEntry> chain);
  // Nothing is left to close.
  void Reset();

  std::shared_ptr<Connection> connection_;
  MemoryRegionId id_;
  bool registered_ = false;
  Registration registration_;
  // The memory under the region, which must not be released before it.
  std::vector<std::shared_ptr<const void>> memory_;
};

// Memory, and a region or an error for each range.
struct Provisioned {
  Memory memory;
  MemoryRegion::Outcomes regions;
};

}  // namespace rnicd::inline client
