#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <span>

#include "absl/status/statusor.h"
#include "base/units.h"

// Memory at addresses of the caller's. On Windows all fail with FIELD_OUT_OF_RANGE, but CheckPrivatePages.
// Threads: safe, as long as nothing else changes the mappings at these addresses.
namespace rnicd::inline client {

// Maps the first `size` bytes of a memory file, for reading and writing, where nothing is mapped. Errors:
// FIELD_OUT_OF_RANGE, MEMORY_PAGES_UNAVAILABLE.
absl::StatusOr<std::span<std::byte>> MapAt(VirtualAddress address, int fd, uint64_t size);

// Checks that this is a shared, writable mapping of the file's first bytes. Errors: FIELD_OUT_OF_RANGE.
absl::Status CheckMapping(std::span<const std::byte> mapping, int fd);

// The inode of the memory file whose first bytes are mapped there, shared; nothing if it is not one file, or not all of
// it.
std::optional<uint64_t> FileUnder(std::span<const std::byte> mapping);

// Checks that these are whole pages of ordinary private memory, by the text of /proc/self/smaps: anonymous, readable
// and writable, with no property that MoveOver would lose. Errors: FIELD_OUT_OF_RANGE. Source: the kernel's
// filesystems/proc, "VmFlags".
absl::Status CheckPrivatePages(std::FILE* smaps, std::span<const std::byte> pages);

// Checks `pages` in this process, and maps as many private pages elsewhere, which do not exist before their first use:
// what gives the bytes back is there from the start. Errors: as CheckPrivatePages; MEMORY_PAGES_UNAVAILABLE.
absl::StatusOr<std::span<std::byte>> MapSpare(std::span<const std::byte> pages);

// Copies the bytes of `pages` into `mapping`, and moves that mapping to their address in their place. In between
// another thread that writes to them gets a SIGSEGV: its write would be lost. Readers notice nothing. On failure both
// are as they were. Errors: MEMORY_PAGES_UNAVAILABLE.
absl::Status MoveOver(std::span<std::byte> mapping, std::span<std::byte> pages);

}  // namespace rnicd::inline client
