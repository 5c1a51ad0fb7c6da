#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/strong_id.h"
#include "base/unique_fd.h"
#include "base/units.h"

namespace rnicd::simulation {

// A memory file. Every memory object that was made of it shows the same bytes.
struct MemoryFile {
  uint64_t number = 0;
  // What must lie in it; as long as the file, which is never shorter than a memory object of it.
  std::vector<std::byte> content;
  // A client's own, to hand it over once more. None while it was not fetched.
  UniqueFd descriptor;
  // It can be mapped by nobody else any more.
  bool sealed = false;
  // A transfer overlapped itself in this step, so that nobody can say what lies here now.
  bool uncertain = false;
};

// A memory object as the model sees it.
struct Memory {
  enum class State : uint8_t { kAllocating, kAwaitingFile, kAttached, kSealed };

  uint64_t number = 0;
  MemoryObjectId id;
  uint64_t bytes = 0;
  State state = State::kAllocating;
  // Sealed, though its pages could not be looked at once more.
  bool seals_complete = false;
  // How many registrations and mappings stand on it.
  uint64_t uses = 0;
  // Both empty before there is a file; its first bytes are those of the memory.
  std::shared_ptr<MemoryFile> file;
  std::span<std::byte> real;
};

// Counts one use as long as it lives.
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

// Bytes of a memory object. Valid while somebody has a use of it.
struct Piece {
  Memory* memory = nullptr;
  uint64_t offset = 0;
  uint64_t length = 0;
};
using Pieces = std::vector<Piece>;

// A page of a memory file: the file's number and the page's.
using FilePage = std::pair<uint64_t, uint64_t>;
using FilePages = std::set<FilePage>;

// The pages behind a logical address mapping, charged as long as anybody holds them.
struct MappedPages {
  struct Page {
    Memory* memory = nullptr;
    uint64_t offset = 0;

    FilePage in_file() const { return {memory->file->number, offset / kNdkPageBytes}; }
  };
  std::vector<Page> pages;
  std::vector<MemoryUse> uses;
};

// What a posted request or a live fast registration holds: the pages it names, and the charge for the list of them.
struct Backing {
  std::vector<std::shared_ptr<const MappedPages>> pages;
  uint64_t list = 0;
};

}  // namespace rnicd::simulation
