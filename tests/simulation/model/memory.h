#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/files/unique_fd.h"
#include "base/strong_id.h"
#include "base/units.h"

namespace rnicd::simulation {

// A memory file. All memory objects made from it share its bytes.
struct MemoryFile {
  uint64_t number = 0;
  // The expected content, as long as the file; a file is never shorter than a memory object made from it.
  std::vector<std::byte> content;
  // The client's descriptor, to send the file again; invalid until fetched.
  UniqueFd descriptor;
  // True once no further process can map the file.
  bool sealed = false;
  // True if a transfer overlapped itself in this step, so that the content is undefined.
  bool uncertain = false;
};

// The model's view of a memory object.
struct Memory {
  enum class State : uint8_t { kAllocating, kAwaitingFile, kAwaitingFetch, kAttached, kSealing, kSealed };

  uint64_t number = 0;
  MemoryObjectId id;
  uint64_t bytes = 0;
  State state = State::kAllocating;
  // True if the seals are set although the check of the pages afterwards failed.
  bool seals_complete = false;
  // True if the daemon has populated it once; clients here punch no holes.
  bool populated = false;
  // Number of registrations and mappings that use it.
  uint64_t uses = 0;
  // File and real bytes, both empty until a file is attached; the memory is the file's first bytes.
  std::shared_ptr<MemoryFile> file;
  std::span<std::byte> real;
};

// Counts one use for its lifetime.
class MemoryUse {
 public:
  explicit MemoryUse(std::shared_ptr<Memory> memory) : memory_(std::move(memory)) { ++memory_->uses; }
  MemoryUse(MemoryUse&& other) noexcept : memory_(std::move(other.memory_)) {}
  MemoryUse& operator=(MemoryUse&&) = delete;
  ~MemoryUse() {
    if (memory_ != nullptr) {
      --memory_->uses;
    }
  }

 private:
  std::shared_ptr<Memory> memory_;
};

// Bytes of a memory object. Valid while a MemoryUse of it exists.
struct Piece {
  Memory* memory = nullptr;
  uint64_t offset = 0;
  uint64_t length = 0;
};
using Pieces = std::vector<Piece>;

// A page of a memory file: file number and page number.
using FilePage = std::pair<uint64_t, uint64_t>;
// Sorted, each once.
using FilePages = std::vector<FilePage>;

// The pages of a logical address mapping, charged for as long as any reference exists.
struct MappedPages {
  struct Page {
    Memory* memory = nullptr;
    uint64_t offset = 0;

    FilePage in_file() const { return {memory->file->number, offset / kNdkPageBytes}; }
  };
  std::vector<Page> pages;
  std::vector<MemoryUse> uses;
  // Pieces of memory that the pages are in.
  uint64_t runs = 0;
};

// The pages that a posted request or a live fast registration names, and the charge for their list.
struct Backing {
  std::vector<std::shared_ptr<const MappedPages>> pages;
  uint64_t list = 0;
  // Pieces of memory, and for a fast registration mappings, that heap bytes are charged for.
  uint64_t pieces = 0;
};

}  // namespace rnicd::simulation
