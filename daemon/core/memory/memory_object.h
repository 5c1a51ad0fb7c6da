#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/system/os.h"
#include "daemon/core/memory/fresh_memory.h"
#include "daemon/core/memory/lingering_memory.h"
#include "daemon/core/memory/populating.h"
#include "daemon/core/memory/ticket_table.h"
#include "daemon/core/tenant/pinned_pages.h"

namespace rnicd::core {

// The descriptor of a client's import, or none: no file. The conversion is implicit, because it is a descriptor with
// its known facts.
struct ImportedFile {
  ImportedFile() = default;
  explicit(false) ImportedFile(UniqueFd descriptor) : file(std::move(descriptor)) {}
  ImportedFile(UniqueFd descriptor, const MemoryFileFacts& known) : file(std::move(descriptor)), facts(known) {}

  UniqueFd file;
  // Facts of the file, which cannot shrink any more. Without them Attach makes the calls of PrepareImport itself.
  std::optional<MemoryFileFacts> facts;
};

// Validates a file that a client brings, and seals it against shrinking, which a dma-buf cannot do. The client can
// block it: it may be writing into the file from memory whose pages it withholds, and F_ADD_SEALS waits for the end of
// the write. Errors: as MemoryObject::Attach.
absl::StatusOr<ImportedFile> PrepareImport(Os& os, UniqueFd file);

// The system calls of a seal. The client can block them, as those of PrepareImport; so they use a descriptor of their
// own, and nothing of the memory object.
struct FileSealing {
  // Seals the file and closes the descriptor.
  void Run(Os& os);

  UniqueFd file;
  // The seals are in place, maybe since an earlier attempt.
  bool complete = false;
  // Facts of the sealed file, or the error.
  absl::StatusOr<MemoryFileFacts> facts = MemoryFileFacts();
};

// Memory that can be registered: a memfd, mapped whole and populated for as long as it lives, and sealed so that its
// owner can no longer remove pages that the card uses. Until Seal the owner can still make its own writable mapping;
// after Seal no process can, and only then does registration begin. ARCHITECTURE.md, "The attach protocol". Released
// memory stays charged for as long as its client has pages that this daemon made: of an allocated file that it has
// fetched, or of an imported one that had holes. Pages that it brought are its own.
//
// A dma-buf is the exception to all of this but the order of the calls: it is not mapped here, because the effect of a
// mapping depends on its exporter, and it has no seals. Its exporter has fixed its size, and keeps its pages for as
// long as a card is attached to it; only the card reaches them (ADR 0036).
// Lifetime: shared; outlives the regions over it, because each holds a Use.
// Threads:  safe. A call that races another one on the same object is refused with MEMORY_IN_USE.
// Source:   fcntl(2) "File Sealing"; memfd_create(2).
class MemoryObject : public std::enable_shared_from_this<MemoryObject> {
 public:
  // The right to touch the mapping; while one exists the object cannot be released.
  class Use {
   public:
    Use(Use&& other) noexcept : object_(std::move(other.object_)) {}
    Use& operator=(Use&& other) noexcept;
    ~Use() { End(); }
    const MemoryObject& object() const { return *object_; }

   private:
    friend class MemoryObject;
    explicit Use(std::shared_ptr<MemoryObject> object) : object_(std::move(object)) {}
    void End();
    std::shared_ptr<MemoryObject> object_;
  };

  // An object without a file yet. The charges count it and its `size`; after its release `lingering` has them. `pins`
  // charges the pages of its file when they are registered.
  MemoryObject(Os& os, LingeringMemory& lingering, uint64_t size, PinBook pins, MemoryCharges charges);
  ~MemoryObject();

  // Takes a file of the daemon's, of the object's size; what it has populated is kept. Transparent huge pages
  // are only made by faults. EndPopulating must follow. Errors: MEMORY_ALREADY_SEALED, those of the system calls.
  absl::Status BeginAllocate(FreshMemory memory, bool transparent_huge_pages = false);
  // All of it at once, however long that takes. Errors: as FreshMemory::Create, BeginAllocate and EndPopulating.
  absl::Status Allocate(const PageChoice& pages);
  // Takes the owner's file. Errors: MEMORY_NOT_MEMORY, MEMORY_READ_ONLY, MEMORY_WRITE_SEALED, MEMORY_NOT_SEALABLE,
  // MEMORY_TOO_SHORT, MEMORY_SIZE_UNALIGNED; FIELD_OUT_OF_RANGE for a dma-buf that is longer than the object. A refused
  // file is closed and left unchanged, except that it may now be sealed against shrinking.
  absl::Status Attach(ImportedFile imported);
  // A descriptor of an allocated file for the owner, once. Errors: MEMORY_NOT_ATTACHED, MEMORY_ALREADY_SEALED.
  absl::StatusOr<UniqueFd> DuplicateFile();
  // Returns the calls that seal the file. FinishSeal must follow when they have run, or AbandonSeal. May be retried
  // after a failure. An allocated file that its owner has not fetched is not attached: it could not be mapped any more.
  // Errors: MEMORY_NOT_ATTACHED, MEMORY_ALREADY_SEALED.
  absl::StatusOr<FileSealing> BeginSeal();
  // Returns the bytes of the sealed file's holes. EndPopulating must follow. After a failure the object is as before
  // BeginSeal. Errors: MEMORY_SEAL_REFUSED.
  absl::StatusOr<uint64_t> FinishSeal(const FileSealing& sealing);
  // All of it at once, however long that takes. Errors: as BeginSeal, FinishSeal and EndPopulating.
  absl::Status Seal();
  // The remaining work of BeginAllocate or FinishSeal, for any number of threads.
  std::shared_ptr<Populating> populating() const { return populating_.work; }
  // After Populating::Next::kEnd, by the thread that got it. After a failure the object is as it was before what was
  // begun. Errors: MEMORY_PAGES_UNAVAILABLE, or why it was cancelled.
  absl::Status EndPopulating();
  // Leaves the object as it was before BeginSeal. The file stays sealed.
  void AbandonSeal() { EndWork(State::kAttached); }
  // Errors: MEMORY_NOT_ATTACHED, MEMORY_NOT_SEALED.
  absl::StatusOr<Use> BeginUse();
  // Unmaps and closes. Errors: MEMORY_IN_USE.
  absl::Status Release();

  // Keeps the ticket for the object's file valid until the object is released.
  void Hold(OwnedTicket ticket);

  uint64_t size() const { return size_; }
  // Bytes of one page. Valid while a Use exists, and after Seal.
  uint64_t page_bytes() const { return content_.page_bytes; }
  // Valid while a Use exists. Empty for a dma-buf.
  std::span<std::byte> mapping() const { return content_.mapping; }
  // Valid while a Use exists, and after Seal.
  bool is_dmabuf() const { return content_.is_dmabuf; }
  // Valid while a Use exists.
  int file() const { return content_.file.get(); }
  const std::shared_ptr<const FilePins>& pins() const { return content_.pins; }

 private:
  // kAttached: the daemon and the owner both have the file.
  enum class State : uint8_t { kAwaitingFile, kAwaitingFetch, kWorking, kAttached, kSealed, kReleased };

  // Moves to kWorking when the object is in `expected`; the thread that moved it owns content_ and populating_.
  absl::Status BeginWork(State expected);
  void EndWork(State next);
  // The rest of Attach, after the facts are known.
  absl::Status Take(ImportedFile imported);
  absl::Status Adopt(UniqueFd file, std::span<std::byte> mapping, const MemoryFileFacts& facts);
  void Keep(UniqueFd file, std::span<std::byte> mapping, const MemoryFileFacts& facts);
  void DropFile();
  void BeginPopulating(State before, State after, uint64_t populated, int fresh_file);
  absl::Status PopulateAll();
  absl::Status Dispose();

  Os& os_;
  LingeringMemory& lingering_;
  const uint64_t size_;
  const PinBook book_;
  // Belongs to the thread that moved the object to kWorking or kReleased; others read it only where a Use or the seal
  // keeps it as it is.
  struct Content {
    UniqueFd file;
    std::span<std::byte> mapping;
    uint64_t page_bytes = 0;
    bool is_dmabuf = false;
    std::shared_ptr<const FilePins> pins;
    bool seals_complete = false;
    // Every page was mapped once, so only the file's holes can be missing.
    bool populated = false;
    FileWatch::Id watch = 0;
    // Its client has pages that were made here.
    bool lingers = false;
  };
  // The operation in progress, and the states before and after it.
  struct Begun {
    State before = State::kAwaitingFile;
    State after = State::kAwaitingFile;
    std::shared_ptr<Populating> work;
  };
  Content content_;
  Begun populating_;

  Mutex mutex_;
  State state_ RNICD_GUARDED_BY(mutex_) = State::kAwaitingFile;
  uint64_t uses_ RNICD_GUARDED_BY(mutex_) = 0;
  MemoryCharges charges_ RNICD_GUARDED_BY(mutex_);
  OwnedTicket ticket_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::core
