#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/access_rights.h"
#include "base/strong_id.h"
#include "base/units.h"
#include "client/cpp/memory.h"

namespace rnicd::inline client {

// What a registered region is known by.
struct Registration {
  // Of the first byte, as peers and SGEs name it.
  VirtualAddress base_address;
  // Bytes.
  uint64_t length = 0;
  // For SGEs of this process.
  LocalToken local_token;
  // For peers; opaque, to be handed on unchanged.
  RemoteToken remote_token;
};

// The right of the adapter to use a range of Memory: an NDK memory region, registered.
//
// `flags` are kMrFlag values of base/access_rights.h combined by OR; 0 allows local reads only.
// Lifetime: keeps its Memory and the session. The destructor deregisters and closes within
//           ClientOptions::release_deadline. A moved-from region is not registered and may be destroyed or assigned.
// Threads:  const methods are safe from several threads, the others are not. Callbacks run on a thread of gRPC's, or on
//           the caller's before the call returns; they must not block for long, but may use and drop any object.
// Errors:   of registering: LENGTH_ZERO, LENGTH_ABOVE_ADAPTER_LIMIT, MDL_*, FLAGS_*, QUOTA_REGIONS, QUOTA_PINNED_BYTES,
//           DEVICE_OUT_OF_RESOURCES, DEVICE_FAILED; transport failures. After a failure nothing is left behind.
// Source:   NDK_FN_CREATE_MR, NDK_FN_REGISTER_MR, NDK_FN_DEREGISTER_MR.
class MemoryRegion {
 public:
  using RegisterCallback = std::function<void(absl::StatusOr<MemoryRegion>)>;
  using Outcomes = std::vector<absl::StatusOr<MemoryRegion>>;
  using CloseCallback = std::function<void(absl::Status)>;

  // All of the memory, at its address in this process.
  static absl::StatusOr<MemoryRegion> Register(const Memory& memory, uint32_t flags);
  // The part of the memory. Errors besides: MDL_RANGE_OUTSIDE_MEMORY, found here.
  static absl::StatusOr<MemoryRegion> Register(const Memory& memory, std::span<const std::byte> part, uint32_t flags);
  // `length` bytes from the first entry's address on. Entries without owner need their Memory kept by the caller.
  static absl::StatusOr<MemoryRegion> RegisterChain(const Client& client, std::span<const MdlEntry> chain,
                                                    uint64_t length, uint32_t flags);

  // Every part as a region of its own, in two RPCs whatever their number (at most 16384). One outcome per part, in
  // order; one that fails does not stop those after it. A status instead of outcomes means that none is registered.
  static absl::StatusOr<Outcomes> RegisterBatch(const Memory& memory, std::span<const std::span<const std::byte>> parts,
                                                uint32_t flags);
  // Closes them in one RPC. The status of the first that failed, or ok; all are gone either way.
  static absl::Status CloseBatch(std::vector<MemoryRegion> regions);

  // Does not wait for the registration where the daemon lets it pend. `callback` is called exactly once.
  static void RegisterAsync(const Memory& memory, std::span<const std::byte> part, uint32_t flags,
                            RegisterCallback callback);
  // Likewise; deregisters first. Both tokens are dead when `callback` is called with ok.
  static void CloseAsync(MemoryRegion region, CloseCallback callback);

  MemoryRegion(MemoryRegion&& other) noexcept;
  MemoryRegion& operator=(MemoryRegion&& other) noexcept;
  ~MemoryRegion();

  MemoryRegionId id() const { return id_; }
  // False once deregistered, closed or moved from; then the rest is 0.
  bool registered() const { return registered_; }
  VirtualAddress base_address() const { return registration_.base_address; }
  // Bytes.
  uint64_t length() const { return registration_.length; }
  LocalToken local_token() const { return registration_.local_token; }
  RemoteToken remote_token() const { return registration_.remote_token; }

  // Both tokens are dead when it succeeds. Errors: REGION_NOT_REGISTERED, REGION_BUSY, DEVICE_FAILED.
  absl::Status Deregister();
  // What the destructor does, with its outcome, within ClientOptions::call_deadline. On failure the region stays.
  // Errors: OBJECT_NOT_FOUND for one that is closed or moved from.
  absl::Status Close();

 private:
  MemoryRegion(std::shared_ptr<Connection> connection, MemoryRegionId id)
      : connection_(std::move(connection)), id_(id) {}

  // CreateMr in the connection's protection domain.
  static absl::StatusOr<MemoryRegion> Create(std::shared_ptr<Connection> connection);
  static absl::StatusOr<Outcomes> CreateBatch(const std::shared_ptr<Connection>& connection, size_t count);
  // RegisterMr, waiting for it.
  absl::Status RegisterNow(std::span<const MdlEntry> chain, uint64_t length, uint32_t flags);
  // Takes what a registration that succeeded has made of this region.
  void Adopt(const Registration& registration, std::span<const MdlEntry> chain);
  // Nothing is left to close.
  void Forget();

  std::shared_ptr<Connection> connection_;
  MemoryRegionId id_;
  bool registered_ = false;
  Registration registration_;
  // The memory under the region, which must not be given back before it.
  std::vector<std::shared_ptr<const void>> memory_;
};

}  // namespace rnicd::inline client
