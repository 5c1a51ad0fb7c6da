#include <algorithm>
#include <span>

#include "client/c/handles.h"
#include "client/c/sized.h"

using rnicd::c::CheckGiven;
using rnicd::c::CloseHandle;
using rnicd::c::Give;
using rnicd::c::Run;

namespace rnicd::c {

absl::StatusOr<AllocateOptions> MemoryOptionsOf(const rnicd_memory_options* given) {
  RNICD_ASSIGN_OR_RETURN(const rnicd_memory_options options, Take(given, "options"));
  RNICD_RETURN_IF_ERROR(CheckFlags(options.flags, RNICD_MEMORY_ON_NODE | RNICD_MEMORY_NO_POPULATE, "options.flags"));
  const auto page_size = static_cast<PageSize>(options.page_size);
  if (page_size != PageSize::kAuto && page_size != PageSize::k4KiB && page_size != PageSize::k2MiB &&
      page_size != PageSize::k1GiB) {
    return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, "options.page_size");
  }
  AllocateOptions own;
  own.size = options.bytes;
  own.page_size = page_size;
  own.address = VirtualAddress{reinterpret_cast<uintptr_t>(options.address)};
  if ((options.flags & RNICD_MEMORY_ON_NODE) != 0) {
    own.numa_node = options.numa_node;
  }
  own.populate = (options.flags & RNICD_MEMORY_NO_POPULATE) == 0;
  if (options.on_progress != nullptr) {
    own.on_progress = [call = options.on_progress, context = options.context](uint64_t ready, uint64_t bytes) {
      call(context, ready, bytes);
    };
  }
  return own;
}

absl::StatusOr<std::span<const std::byte>> PartOf(const rnicd_memory& memory, uint64_t offset, uint64_t length) {
  const std::span<std::byte> bytes = memory.object.bytes();
  if (offset > bytes.size() || length > bytes.size() - offset) {
    return MakeError({.reason = ErrorReason::MDL_RANGE_OUTSIDE_MEMORY,
                      .field = offset > bytes.size() ? "offset" : "length",
                      .limit = bytes.size()});
  }
  return bytes.subspan(offset, length);
}

absl::StatusOr<std::vector<MdlEntry>> EntriesOf(const rnicd_mdl* chain, uint32_t count) {
  std::vector<MdlEntry> entries;
  for (uint32_t index = 0; index < count; ++index) {
    const rnicd_mdl& given = chain[index];
    const auto entry = [&]() -> absl::StatusOr<MdlEntry> {
      RNICD_RETURN_IF_ERROR(CheckGiven("memory", given.memory));
      RNICD_ASSIGN_OR_RETURN(const std::span<const std::byte> part, PartOf(*given.memory, given.offset, given.length));
      return given.memory->object.Entry(part);
    }();
    if (!entry.ok()) {
      return WithFieldPrefix(entry.status(), "chain[" + std::to_string(index) + "].");
    }
    entries.push_back(*entry);
    if (given.address != 0) {
      entries.back().virtual_address = VirtualAddress{given.address};
    }
  }
  return entries;
}

absl::Status OfItem(const absl::Status& failure, std::string_view name, size_t index) {
  const std::string number = "[" + std::to_string(index) + "].";
  std::string field = ErrorInfoOf(failure).field;
  if (field.starts_with("items" + number)) {
    field.erase(0, number.size() + 5);
  }
  return WithField(failure, std::string(name) + number + field);
}

namespace {

std::span<std::byte> BytesAt(void* address, uint64_t bytes) {
  return {static_cast<std::byte*>(address), static_cast<size_t>(bytes)};
}

// The options of a batch, whose elements are as far apart as the first says.
absl::StatusOr<std::vector<AllocateOptions>> BatchOf(const rnicd_memory_options* options, uint32_t count) {
  std::vector<AllocateOptions> batch;
  const auto* next = reinterpret_cast<const std::byte*>(options);
  for (uint32_t index = 0; index < count; ++index, next += options->size) {
    const auto* const one = reinterpret_cast<const rnicd_memory_options*>(next);
    if (one->size != options->size) {
      return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, "options.size");
    }
    RNICD_ASSIGN_OR_RETURN(AllocateOptions own, MemoryOptionsOf(one));
    batch.push_back(std::move(own));
  }
  return batch;
}

}  // namespace
}  // namespace rnicd::c

int rnicd_allocate_memory(rnicd_session* session, const rnicd_memory_options* options, rnicd_memory** memory) {
  return Run([&]() -> absl::Status {
    RNICD_RETURN_IF_ERROR(CheckGiven("session", session, "options", options, "memory", memory));
    RNICD_ASSIGN_OR_RETURN(const rnicd::AllocateOptions own, rnicd::c::MemoryOptionsOf(options));
    return Give(rnicd::Memory::Allocate(session->object, own), memory);
  });
}

int rnicd_allocate_batch(rnicd_session* session, const rnicd_memory_options* options, uint32_t count,
                         rnicd_memory** memories) {
  return Run([&]() -> absl::Status {
    RNICD_RETURN_IF_ERROR(CheckGiven("session", session, "options", options, "memories", memories));
    std::fill_n(memories, count, nullptr);
    RNICD_ASSIGN_OR_RETURN(const std::vector<rnicd::AllocateOptions> batch, rnicd::c::BatchOf(options, count));
    RNICD_ASSIGN_OR_RETURN(auto outcomes, rnicd::Memory::AllocateBatch(session->object, batch));
    return rnicd::c::GiveEach(std::move(outcomes), memories, "options");
  });
}

int rnicd_import_memory(rnicd_session* session, int fd, uint64_t bytes, rnicd_memory** memory) {
  return Run([&]() -> absl::Status {
    RNICD_RETURN_IF_ERROR(CheckGiven("session", session, "memory", memory));
    return Give(rnicd::Memory::Import(session->object, fd, bytes), memory);
  });
}

int rnicd_import_mapping(rnicd_session* session, int fd, void* mapping, uint64_t bytes, rnicd_memory** memory) {
  return Run([&]() -> absl::Status {
    RNICD_RETURN_IF_ERROR(CheckGiven("session", session, "mapping", mapping, "memory", memory));
    return Give(rnicd::Memory::Import(session->object, fd, rnicd::c::BytesAt(mapping, bytes)), memory);
  });
}

int rnicd_replace_memory(rnicd_session* session, void* pages, uint64_t bytes, rnicd_memory** memory) {
  return Run([&]() -> absl::Status {
    RNICD_RETURN_IF_ERROR(CheckGiven("session", session, "pages", pages, "memory", memory));
    return Give(rnicd::Memory::Replace(session->object, rnicd::c::BytesAt(pages, bytes)), memory);
  });
}

int rnicd_close_memory(rnicd_memory* memory) {
  return CloseHandle(memory, [](rnicd::Memory& object) { return object.Release(); });
}

int rnicd_query_memory(const rnicd_memory* memory, rnicd_memory_info* info) {
  return Run([&]() -> absl::Status {
    RNICD_RETURN_IF_ERROR(CheckGiven("memory", memory));
    const rnicd::Memory& object = memory->object;
    return rnicd::c::Fill({.size = sizeof(*info),
                           .address = object.bytes().data(),
                           .bytes = object.size(),
                           .page_size = static_cast<uint64_t>(object.page_size()),
                           .id = object.id().value,
                           .from_pool = object.from_pool() ? 1u : 0u,
                           .transparent_huge_pages = object.transparent_huge_pages() ? 1u : 0u},
                          info, "info");
  });
}
