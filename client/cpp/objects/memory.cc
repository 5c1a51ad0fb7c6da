#include "client/cpp/memory.h"

#include <utility>

#include "base/checked_range.h"
#include "base/status.h"
#include "client/cpp/client.h"
#include "client/cpp/objects/attached_memory.h"

namespace rnicd::inline client {

absl::StatusOr<Memory> Memory::Allocate(const Client& client, const AllocateOptions& options) {
  if (client.connection() == nullptr) {
    return MakeError(ErrorReason::SESSION_REQUIRED);
  }
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<AttachedMemory> attached,
                         AttachedMemory::Allocate(client.connection(), options));
  return Memory(std::move(attached));
}

absl::StatusOr<std::vector<absl::StatusOr<Memory>>> Memory::AllocateBatch(const Client& client,
                                                                          std::span<const AllocateOptions> options) {
  if (client.connection() == nullptr) {
    return MakeError(ErrorReason::SESSION_REQUIRED);
  }
  RNICD_ASSIGN_OR_RETURN(AttachedMemory::Outcomes attached,
                         AttachedMemory::AllocateBatch(client.connection(), options));
  std::vector<absl::StatusOr<Memory>> memories;
  memories.reserve(attached.size());
  for (absl::StatusOr<std::shared_ptr<AttachedMemory>>& one : attached) {
    memories.push_back(one.ok() ? absl::StatusOr<Memory>(Memory(*std::move(one))) : one.status());
  }
  return memories;
}

absl::StatusOr<Memory> Memory::Import(const Client& client, int fd, uint64_t size) {
  if (client.connection() == nullptr) {
    return MakeError(ErrorReason::SESSION_REQUIRED);
  }
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<AttachedMemory> attached,
                         AttachedMemory::Import(client.connection(), fd, size));
  return Memory(std::move(attached));
}

std::span<std::byte> Memory::bytes() const {
  return attached_ == nullptr ? std::span<std::byte>() : attached_->bytes();
}

VirtualAddress Memory::address() const { return VirtualAddress{reinterpret_cast<uintptr_t>(bytes().data())}; }

MemoryObjectId Memory::id() const { return attached_ == nullptr ? MemoryObjectId{} : attached_->id(); }

bool Memory::from_pool() const { return attached_ != nullptr && attached_->from_pool(); }

bool Memory::transparent_huge_pages() const { return attached_ != nullptr && attached_->transparent_huge_pages(); }

PageSize Memory::page_size() const { return attached_ == nullptr ? PageSize::k4KiB : attached_->page_size(); }

absl::StatusOr<MdlEntry> Memory::Entry(std::span<const std::byte> part) const {
  const auto start = reinterpret_cast<uintptr_t>(part.data());
  const auto whole = CheckedRange::Make(address().value, size());
  if (attached_ == nullptr || !whole.has_value() || !whole->Contains(start, part.size())) {
    return MakeError(ErrorReason::MDL_RANGE_OUTSIDE_MEMORY, "part");
  }
  return MdlEntry{.memory_id = id(),
                  .byte_offset = start - address().value,
                  .byte_count = part.size(),
                  .virtual_address = VirtualAddress{start},
                  .owner = attached_};
}

absl::Status Memory::Release() {
  if (attached_ == nullptr) {
    return MakeError(ErrorReason::OBJECT_NOT_FOUND);
  }
  RNICD_RETURN_IF_ERROR(attached_->Release());
  attached_.reset();
  return absl::OkStatus();
}

std::shared_ptr<Connection> Memory::connection() const {
  return attached_ == nullptr ? nullptr : attached_->connection();
}

}  // namespace rnicd::inline client
