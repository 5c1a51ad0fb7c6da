#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "base/strong_id.h"
#include "client/cpp/memory.h"

namespace rnicd::inline client {

// A memory object of the session and this process's mapping of it: what a Memory and its regions share.
// Lifetime: unmaps and releases when the last of them is destroyed, also when attaching failed half way.
// Threads:  safe once attached.
class AttachedMemory {
 public:
  // AllocateMemory, fetch the descriptor, map, seal.
  static absl::StatusOr<std::shared_ptr<AttachedMemory>> Allocate(std::shared_ptr<Connection> connection,
                                                                  const AllocateOptions& options);
  // ImportMemory, map, send the descriptor, seal.
  static absl::StatusOr<std::shared_ptr<AttachedMemory>> Import(std::shared_ptr<Connection> connection, int fd,
                                                                uint64_t size);
  AttachedMemory(const AttachedMemory&) = delete;
  AttachedMemory& operator=(const AttachedMemory&) = delete;
  ~AttachedMemory();

  const std::shared_ptr<Connection>& connection() const { return connection_; }
  MemoryObjectId id() const { return id_; }
  std::span<std::byte> bytes() const { return bytes_; }
  PageSize page_size() const { return page_size_; }
  bool from_pool() const { return from_pool_; }
  bool transparent_huge_pages() const { return transparent_huge_pages_; }

  // After this the destructor only unmaps. Errors: those of ReleaseMemory.
  absl::Status Release();

 private:
  AttachedMemory(std::shared_ptr<Connection> connection, MemoryObjectId id)
      : connection_(std::move(connection)), id_(id) {}

  // The mapping must be made before Seal, which forbids new writable ones.
  absl::Status Map(int fd, uint64_t size);
  absl::Status Seal();

  const std::shared_ptr<Connection> connection_;
  const MemoryObjectId id_;
  std::span<std::byte> bytes_;
  PageSize page_size_ = PageSize::k4KiB;
  bool from_pool_ = false;
  bool transparent_huge_pages_ = false;
  bool released_ = false;
};

}  // namespace rnicd::inline client
