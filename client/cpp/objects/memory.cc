#include "client/cpp/memory.h"

#include <utility>

#include "base/checked_range.h"
#include "base/status.h"
#include "client/cpp/client.h"
#include "client/cpp/objects/attached_memory.h"

namespace rnicd::inline client {

namespace {

absl::StatusOr<std::shared_ptr<Connection>> SessionOf(const Client& client) {
  return client.connection() == nullptr
             ? absl::StatusOr<std::shared_ptr<Connection>>(MakeError(ErrorReason::SESSION_REQUIRED))
             : client.connection();
}

}  // namespace

absl::StatusOr<Memory> Memory::From(absl::StatusOr<std::shared_ptr<AttachedMemory>> attached) {
  return attached.ok() ? absl::StatusOr<Memory>(Memory(*std::move(attached))) : attached.status();
}

absl::StatusOr<Memory> Memory::Allocate(const Client& client, const AllocateOptions& options) {
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<Connection> session, SessionOf(client));
  return From(AttachedMemory::Allocate(std::move(session), options));
}

absl::StatusOr<std::vector<absl::StatusOr<Memory>>> Memory::AllocateBatch(const Client& client,
                                                                          std::span<const AllocateOptions> options) {
  RNICD_ASSIGN_OR_RETURN(const std::shared_ptr<Connection> session, SessionOf(client));
  RNICD_ASSIGN_OR_RETURN(AttachedMemory::Outcomes attached, AttachedMemory::AllocateBatch(session, options));
  std::vector<absl::StatusOr<Memory>> memories;
  memories.reserve(attached.size());
  for (absl::StatusOr<std::shared_ptr<AttachedMemory>>& one : attached) {
    memories.push_back(From(std::move(one)));
  }
  return memories;
}

absl::StatusOr<Memory> Memory::Import(const Client& client, int fd, uint64_t size) {
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<Connection> session, SessionOf(client));
  return From(AttachedMemory::Import(std::move(session), fd, size));
}

absl::StatusOr<Memory> Memory::Import(const Client& client, int fd, std::span<std::byte> mapping) {
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<Connection> session, SessionOf(client));
  return From(AttachedMemory::Import(std::move(session), fd, mapping.size(), mapping));
}

absl::StatusOr<Memory> Memory::Replace(const Client& client, std::span<std::byte> pages) {
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<Connection> session, SessionOf(client));
  return From(AttachedMemory::Replace(std::move(session), pages));
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
