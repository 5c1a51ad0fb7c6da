#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/strong_id.h"
#include "client/cpp/memory.h"
#include "rnicd/v1/memory_service.pb.h"

namespace rnicd::inline client {

// A memory object of the session and this process's mapping of it: what a Memory and its regions share.
// Lifetime: unmaps, or gives the caller's pages back, and releases when the last of them is destroyed, also when
//           attaching failed half way.
// Threads:  safe once attached.
class AttachedMemory {
 public:
  using Outcomes = std::vector<absl::StatusOr<std::shared_ptr<AttachedMemory>>>;

  // AllocateMemory, fetch the descriptor, map; Seal must follow, or ProvisionMemory and SetPageSize.
  static absl::StatusOr<std::shared_ptr<AttachedMemory>> AllocateUnsealed(std::shared_ptr<Connection> connection,
                                                                          const AllocateOptions& options);
  // AllocateUnsealed, Seal.
  static absl::StatusOr<std::shared_ptr<AttachedMemory>> Allocate(std::shared_ptr<Connection> connection,
                                                                  const AllocateOptions& options);
  // The same for many, by BatchAllocateMemory and BatchSealMemory.
  static absl::StatusOr<Outcomes> AllocateBatch(const std::shared_ptr<Connection>& connection,
                                                std::span<const AllocateOptions> options);
  // ImportMemory, send the descriptor, map unless the caller has a mapping, seal.
  static absl::StatusOr<std::shared_ptr<AttachedMemory>> Import(std::shared_ptr<Connection> connection, int fd,
                                                                uint64_t size,
                                                                std::optional<std::span<std::byte>> mapping = {});
  // Allocate, and move the mapping over `pages`, which get their bytes back at the end.
  static absl::StatusOr<std::shared_ptr<AttachedMemory>> Replace(std::shared_ptr<Connection> connection,
                                                                 std::span<std::byte> pages);
  AttachedMemory(const AttachedMemory&) = delete;
  AttachedMemory& operator=(const AttachedMemory&) = delete;
  ~AttachedMemory();

  const std::shared_ptr<Connection>& connection() const { return connection_; }
  MemoryObjectId id() const { return id_; }
  std::span<std::byte> bytes() const { return bytes_; }
  PageSize page_size() const { return page_size_; }
  bool from_pool() const { return from_pool_; }
  bool transparent_huge_pages() const { return transparent_huge_pages_; }
  // As the daemon reported it when it sealed the object.
  void SetPageSize(v1::PageSize page_size);

  // After this the destructor releases nothing. Errors: those of ReleaseMemory.
  absl::Status Release();

 private:
  AttachedMemory(std::shared_ptr<Connection> connection, MemoryObjectId id)
      : connection_(std::move(connection)), id_(id) {}

  // Fetches the descriptor of an object that was allocated, and maps it.
  static absl::StatusOr<std::shared_ptr<AttachedMemory>> Attach(std::shared_ptr<Connection> connection,
                                                                const v1::AllocateMemoryResponse& allocated,
                                                                const AllocateOptions& options);
  static absl::Status SealBatch(Connection& connection, Outcomes& outcomes);
  // The mapping must be made before Seal, which forbids new writable ones. Address 0 means anywhere.
  absl::Status Map(int fd, uint64_t size, VirtualAddress address);
  // The end of the mapping. Pages that cannot be given back stay those of the file, with their bytes. Where
  // the caller has unmapped them against the rules, whatever is there now stays as it is.
  void Detach();
  absl::Status Seal();

  const std::shared_ptr<Connection> connection_;
  const MemoryObjectId id_;
  std::span<std::byte> bytes_;
  bool is_callers_mapping_ = false;
  // Private pages that take the place of bytes_ at the end. Empty unless these replaced some.
  std::span<std::byte> spare_;
  // The inode of the daemon's file, of which the caller's pages must still be.
  std::optional<uint64_t> file_;
  PageSize page_size_ = PageSize::k4KiB;
  bool from_pool_ = false;
  bool transparent_huge_pages_ = false;
  bool released_ = false;
};

}  // namespace rnicd::inline client
