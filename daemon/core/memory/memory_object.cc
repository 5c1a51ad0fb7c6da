#include "daemon/core/memory/memory_object.h"

#include <algorithm>
#include <string>

#include "base/status.h"

namespace rnicd::core {
namespace {

absl::Status CheckImportedFile(const MemoryFileFacts& facts) {
  if (!facts.is_memory_file && !facts.is_dmabuf) {
    return MakeError(ErrorReason::MEMORY_NOT_MEMORY);
  }
  if (!facts.is_read_write) {
    return MakeError(ErrorReason::MEMORY_READ_ONLY);
  }
  if (facts.is_dmabuf) {
    return absl::OkStatus();
  }
  if (facts.seals.write || facts.seals.future_write) {
    return MakeError(ErrorReason::MEMORY_WRITE_SEALED);
  }
  if (facts.seals.seal) {
    return MakeError(ErrorReason::MEMORY_NOT_SEALABLE);
  }
  return absl::OkStatus();
}

// A descriptor of a dma-buf keeps all of its memory, so all of it is charged.
absl::Status CheckSize(const MemoryFileFacts& facts, uint64_t size) {
  if (facts.size < size) {
    return MakeError(ErrorReason::MEMORY_TOO_SHORT, "size");
  }
  if (facts.is_dmabuf && facts.size != size) {
    return MakeErrorWithDetail(ErrorInfo{.reason = ErrorReason::FIELD_OUT_OF_RANGE, .field = "size"},
                               "a dma-buf is imported whole: it has " + std::to_string(facts.size) + " bytes");
  }
  return size % facts.page_bytes == 0 ? absl::OkStatus() : MakeError(ErrorReason::MEMORY_SIZE_UNALIGNED, "size");
}

}  // namespace

absl::StatusOr<ImportedFile> PrepareImport(Os& os, UniqueFd file) {
  RNICD_ASSIGN_OR_RETURN(const MemoryFileFacts before, os.Inspect(file.get()));
  RNICD_RETURN_IF_ERROR(CheckImportedFile(before));
  if (before.is_dmabuf) {
    return ImportedFile(std::move(file), before);
  }
  RNICD_RETURN_IF_ERROR(os.AddSeals(file.get(), {.shrink = true}));
  // The size is final only now that the file cannot shrink any more.
  RNICD_ASSIGN_OR_RETURN(const MemoryFileFacts facts, os.Inspect(file.get()));
  return ImportedFile(std::move(file), facts);
}

// Read the facts after sealing: no hole can appear any more.
void FileSealing::Run(Os& os) {
  facts = [&]() -> absl::StatusOr<MemoryFileFacts> {
    if (!complete) {
      RNICD_RETURN_IF_ERROR(os.AddSeals(file.get(), {.future_write = true, .seal = true}));
      complete = true;
    }
    return os.Inspect(file.get());
  }();
  file.Reset(-1);
}

MemoryObject::Use& MemoryObject::Use::operator=(Use&& other) noexcept {
  if (this != &other) {
    End();
    object_ = std::move(other.object_);
  }
  return *this;
}

void MemoryObject::Use::End() {
  if (object_ != nullptr) {
    {
      MutexLock lock(object_->mutex_);
      --object_->uses_;
    }
    object_.reset();
  }
}

MemoryObject::MemoryObject(Os& os, LingeringMemory& lingering, uint64_t size, PinBook pins, MemoryCharges charges)
    : os_(os), lingering_(lingering), size_(size), book_(std::move(pins)), charges_(std::move(charges)) {}

// There is no other owner; a failing munmap cannot be handled.
MemoryObject::~MemoryObject() { (void)Dispose(); }

absl::Status MemoryObject::BeginWork(State expected) {
  MutexLock lock(mutex_);
  if (state_ == expected) {
    state_ = State::kWorking;
    return absl::OkStatus();
  }
  switch (state_) {
    case State::kAwaitingFile:
    case State::kAwaitingFetch:
      return MakeError(ErrorReason::MEMORY_NOT_ATTACHED, "memory_id");
    case State::kSealed:
    case State::kAttached:
      return MakeError(ErrorReason::MEMORY_ALREADY_SEALED, "memory_id");
    default:
      return MakeError(ErrorReason::MEMORY_IN_USE, "memory_id");
  }
}

void MemoryObject::EndWork(State next) {
  MutexLock lock(mutex_);
  state_ = next;
}

absl::Status MemoryObject::BeginAllocate(FreshMemory memory, bool transparent_huge_pages) {
  RNICD_RETURN_IF_ERROR(BeginWork(State::kAwaitingFile));
  const uint64_t populated = memory.populated();
  absl::Status status = [&]() -> absl::Status {
    RNICD_RETURN_IF_ERROR(os_.AddSeals(memory.file(), {.shrink = true, .grow = true}));
    RNICD_ASSIGN_OR_RETURN(const MemoryFileFacts facts, os_.Inspect(memory.file()));
    auto [file, mapping] = std::move(memory).TakeOver();
    return Adopt(std::move(file), mapping, facts);
  }();
  if (!status.ok()) {
    EndWork(State::kAwaitingFile);
    return status;
  }
  BeginPopulating(State::kAwaitingFile, State::kAwaitingFetch, populated,
                  transparent_huge_pages ? -1 : content_.file.get());
  return absl::OkStatus();
}

absl::Status MemoryObject::Allocate(const PageChoice& pages) {
  RNICD_ASSIGN_OR_RETURN(FreshMemory memory, FreshMemory::Create(os_, size_, pages));
  RNICD_RETURN_IF_ERROR(BeginAllocate(std::move(memory)));
  return PopulateAll();
}

absl::Status MemoryObject::Attach(ImportedFile imported) {
  RNICD_RETURN_IF_ERROR(BeginWork(State::kAwaitingFile));
  absl::Status status = [&]() -> absl::Status {
    if (!imported.facts.has_value()) {
      RNICD_ASSIGN_OR_RETURN(imported, PrepareImport(os_, std::move(imported.file)));
    }
    return Take(std::move(imported));
  }();
  EndWork(status.ok() ? State::kAttached : State::kAwaitingFile);
  return status;
}

// No page of a dma-buf is the daemon's, so none lingers, and it is not watched.
absl::Status MemoryObject::Take(ImportedFile imported) {
  RNICD_RETURN_IF_ERROR(CheckSize(*imported.facts, size_));
  if (imported.facts->is_dmabuf) {
    Keep(std::move(imported.file), {}, *imported.facts);
    return absl::OkStatus();
  }
  RNICD_ASSIGN_OR_RETURN(const std::span<std::byte> mapping, os_.Map(imported.file.get(), size_));
  return Adopt(std::move(imported.file), mapping, *imported.facts);
}

// Unmaps after a failure.
absl::Status MemoryObject::Adopt(UniqueFd file, std::span<std::byte> mapping, const MemoryFileFacts& facts) {
  const absl::StatusOr<FileWatch::Id> watch = lingering_.Watch(file.get());
  if (!watch.ok()) {
    (void)os_.Unmap(mapping);
    return watch.status();
  }
  content_.watch = *watch;
  Keep(std::move(file), mapping, facts);
  return absl::OkStatus();
}

void MemoryObject::Keep(UniqueFd file, std::span<std::byte> mapping, const MemoryFileFacts& facts) {
  content_.file = std::move(file);
  content_.mapping = mapping;
  content_.page_bytes = facts.page_bytes;
  content_.is_dmabuf = facts.is_dmabuf;
  content_.pins = book_.Open({.device = facts.device, .inode = facts.inode});
}

void MemoryObject::BeginPopulating(State before, State after, uint64_t populated, int fresh_file) {
  const Populating::Work work = {
      .mapping = content_.mapping, .page_bytes = content_.page_bytes, .populated = populated, .fresh_file = fresh_file};
  populating_ = {.before = before, .after = after, .work = std::make_shared<Populating>(os_, work)};
}

absl::Status MemoryObject::EndPopulating() {
  const absl::Status status = populating_.work->status();
  if (!status.ok() && populating_.before == State::kAwaitingFile) {
    DropFile();
  }
  content_.populated = content_.populated || status.ok();
  EndWork(status.ok() ? populating_.after : populating_.before);
  return status;
}

absl::Status MemoryObject::PopulateAll() {
  while (populating_.work->RunPiece() == Populating::Next::kGoOn) {
  }
  return EndPopulating();
}

// No client has seen the file.
void MemoryObject::DropFile() {
  if (!content_.mapping.empty()) {
    (void)os_.Unmap(content_.mapping);
  }
  content_.mapping = {};
  content_.populated = false;
  content_.pins.reset();
  content_.file.Reset(-1);
}

absl::StatusOr<UniqueFd> MemoryObject::DuplicateFile() {
  RNICD_RETURN_IF_ERROR(BeginWork(State::kAwaitingFetch));
  absl::StatusOr<UniqueFd> duplicate = os_.Duplicate(content_.file.get());
  content_.lingers = duplicate.ok();
  EndWork(duplicate.ok() ? State::kAttached : State::kAwaitingFetch);
  return duplicate;
}

absl::StatusOr<FileSealing> MemoryObject::BeginSeal() {
  RNICD_RETURN_IF_ERROR(BeginWork(State::kAttached));
  absl::StatusOr<UniqueFd> duplicate = os_.Duplicate(content_.file.get());
  if (!duplicate.ok()) {
    EndWork(State::kAttached);
    return duplicate.status();
  }
  return FileSealing{.file = *std::move(duplicate), .complete = content_.seals_complete || content_.is_dmabuf};
}

// Until the seal the owner could punch holes. They are filled here, where running out of pages is an error: during a
// transfer it would be a signal. A hole may be anywhere in the file. A dma-buf has none, and no mapping to populate.
absl::StatusOr<uint64_t> MemoryObject::FinishSeal(const FileSealing& sealing) {
  content_.seals_complete = sealing.complete;
  if (!sealing.facts.ok()) {
    AbandonSeal();
    return sealing.facts.status();
  }
  const uint64_t holes = sealing.facts->size - std::min(sealing.facts->size, sealing.facts->populated_bytes);
  content_.lingers = content_.lingers || holes > 0;
  BeginPopulating(State::kAttached, State::kSealed, content_.populated && holes == 0 ? size_ : 0, -1);
  return std::min(holes, size_);
}

absl::Status MemoryObject::Seal() {
  RNICD_ASSIGN_OR_RETURN(FileSealing sealing, BeginSeal());
  sealing.Run(os_);
  RNICD_RETURN_IF_ERROR(FinishSeal(sealing).status());
  return PopulateAll();
}

absl::StatusOr<MemoryObject::Use> MemoryObject::BeginUse() {
  MutexLock lock(mutex_);
  switch (state_) {
    case State::kSealed:
      ++uses_;
      return Use(shared_from_this());
    case State::kAwaitingFile:
      return MakeError(ErrorReason::MEMORY_NOT_ATTACHED);
    default:
      return MakeError(ErrorReason::MEMORY_NOT_SEALED);
  }
}

void MemoryObject::Hold(OwnedTicket ticket) {
  MutexLock lock(mutex_);
  if (state_ != State::kReleased) {
    ticket_ = std::move(ticket);
  }
}

absl::Status MemoryObject::Release() {
  {
    // Revoked when the lock is released.
    OwnedTicket ticket;
    MutexLock lock(mutex_);
    if (uses_ > 0 || state_ == State::kWorking || state_ == State::kReleased) {
      return MakeError(ErrorReason::MEMORY_IN_USE, "memory_id");
    }
    state_ = State::kReleased;
    ticket = std::move(ticket_);
  }
  return Dispose();
}

// Called by the last user.
absl::Status MemoryObject::Dispose() {
  const absl::Status status = content_.mapping.empty() ? absl::OkStatus() : os_.Unmap(content_.mapping);
  content_.mapping = {};
  MemoryCharges charges;
  {
    MutexLock lock(mutex_);
    charges = std::move(charges_);
  }
  if (content_.file.valid() && content_.lingers) {
    lingering_.Keep(content_.watch, std::move(content_.file), std::move(charges));
  }
  content_.file.Reset(-1);
  return status;
}

}  // namespace rnicd::core
