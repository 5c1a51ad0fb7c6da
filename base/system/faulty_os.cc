#include "base/system/faulty_os.h"

#include <string>
#include <utility>

#include "base/status.h"

namespace rnicd {

void FaultyOs::FailNext(const std::string& method, absl::Status failure, uint64_t count) {
  MutexLock lock(mutex_);
  faults_[method] = Fault{std::move(failure), count};
}

void FaultyOs::ReportAsDmabuf(int fd) {
  const absl::StatusOr<MemoryFileFacts> facts = real_.Inspect(fd);
  MutexLock lock(mutex_);
  dmabufs_.emplace(facts->device, facts->inode);
}

bool FaultyOs::IsDmabuf(const MemoryFileFacts& facts) const {
  MutexLock lock(mutex_);
  return dmabufs_.contains({facts.device, facts.inode});
}

bool FaultyOs::IsDmabuf(int fd) const {
  const absl::StatusOr<MemoryFileFacts> facts = real_.Inspect(fd);
  return facts.ok() && IsDmabuf(*facts);
}

absl::Status FaultyOs::RequirePage(std::span<std::byte> range, const char* call) const {
  return reinterpret_cast<uintptr_t>(range.data()) % page_bytes() == 0
             ? absl::OkStatus()
             : MakeErrorWithDetail(ErrorReason::INTERNAL_FAULT, std::string(call) + ": EINVAL");
}

uint64_t FaultyOs::live_mappings() const {
  MutexLock lock(mutex_);
  return live_mappings_;
}

absl::Status FaultyOs::TakeFault(const std::string& method) {
  MutexLock lock(mutex_);
  const auto fault = faults_.find(method);
  if (fault == faults_.end() || fault->second.remaining == 0) {
    return absl::OkStatus();
  }
  --fault->second.remaining;
  // Each caller gets its own status: sharing one between threads is sound, but the sanitizer cannot see into abseil.
  return MakeError(ErrorInfoOf(fault->second.failure));
}

absl::StatusOr<UniqueFd> FaultyOs::CreateMemoryFile(uint64_t size, uint64_t page_bytes) {
  RNICD_RETURN_IF_ERROR(TakeFault("CreateMemoryFile"));
  return real_.CreateMemoryFile(size, PageBytesOf(page_bytes));
}

absl::StatusOr<MemoryFileFacts> FaultyOs::Inspect(int fd) {
  RNICD_RETURN_IF_ERROR(TakeFault("Inspect"));
  RNICD_ASSIGN_OR_RETURN(MemoryFileFacts facts, real_.Inspect(fd));
  facts.populated_bytes = OccupiedBytes(*this, facts.populated_bytes);
  if (IsDmabuf(facts)) {
    facts.is_memory_file = false;
    facts.is_dmabuf = true;
    facts.populated_bytes = facts.size;
    facts.seals = {};
  }
  return facts;
}

absl::Status FaultyOs::AddSeals(int fd, const Seals& seals) {
  RNICD_RETURN_IF_ERROR(TakeFault("AddSeals"));
  return IsDmabuf(fd) ? MakeError(ErrorReason::MEMORY_SEAL_REFUSED) : real_.AddSeals(fd, seals);
}

absl::StatusOr<UniqueFd> FaultyOs::Duplicate(int fd) {
  RNICD_RETURN_IF_ERROR(TakeFault("Duplicate"));
  return real_.Duplicate(fd);
}

absl::StatusOr<std::span<std::byte>> FaultyOs::Map(int fd, uint64_t size) {
  RNICD_RETURN_IF_ERROR(TakeFault("Map"));
  if (IsDmabuf(fd)) {
    return MakeErrorWithDetail(ErrorReason::INTERNAL_FAULT, "mmap: ENODEV");
  }
  RNICD_ASSIGN_OR_RETURN(std::span<std::byte> mapping, real_.Map(fd, size));
  RNICD_ASSIGN_OR_RETURN(mapping, PlaceAtPage(mapping));
  MutexLock lock(mutex_);
  ++live_mappings_;
  return mapping;
}

absl::Status FaultyOs::Unmap(std::span<std::byte> mapping) {
  RNICD_RETURN_IF_ERROR(TakeFault("Unmap"));
  RNICD_RETURN_IF_ERROR(RequirePage(mapping, "munmap"));
  RNICD_RETURN_IF_ERROR(real_.Unmap(mapping));
  MutexLock lock(mutex_);
  --live_mappings_;
  return absl::OkStatus();
}

absl::Status FaultyOs::BindToNumaNode(std::span<std::byte> mapping, uint32_t numa_node) {
  RNICD_RETURN_IF_ERROR(TakeFault("BindToNumaNode"));
  RNICD_RETURN_IF_ERROR(RequirePage(mapping, "mbind"));
  return real_.BindToNumaNode(mapping, numa_node);
}

absl::Status FaultyOs::Populate(std::span<std::byte> mapping) {
  RNICD_RETURN_IF_ERROR(TakeFault("Populate"));
  RNICD_RETURN_IF_ERROR(RequirePage(mapping, "madvise(MADV_POPULATE_WRITE)"));
  return real_.Populate(mapping);
}

absl::Status FaultyOs::Resize(int fd, uint64_t size) {
  RNICD_RETURN_IF_ERROR(TakeFault("Resize"));
  return real_.Resize(fd, size);
}

absl::StatusOr<std::span<std::byte>> FaultyOs::Remap(std::span<std::byte> mapping, uint64_t size) {
  RNICD_RETURN_IF_ERROR(TakeFault("Remap"));
  RNICD_RETURN_IF_ERROR(RequirePage(mapping, "mremap"));
  RNICD_ASSIGN_OR_RETURN(const std::span<std::byte> moved, real_.Remap(mapping, size));
  return PlaceAtPage(moved);
}

absl::Status FaultyOs::Reserve(int fd, uint64_t offset, uint64_t bytes) {
  RNICD_RETURN_IF_ERROR(TakeFault("Reserve"));
  return real_.Reserve(fd, offset, bytes);
}

absl::Status FaultyOs::MakePages(int fd, uint64_t offset, uint64_t bytes, uint64_t page_bytes) {
  RNICD_RETURN_IF_ERROR(TakeFault("MakePages"));
  return real_.MakePages(fd, offset, bytes, PageBytesOf(page_bytes));
}

absl::Status FaultyOs::MapPages(std::span<std::byte> mapping) {
  RNICD_RETURN_IF_ERROR(TakeFault("MapPages"));
  RNICD_RETURN_IF_ERROR(RequirePage(mapping, "madvise(MADV_POPULATE_READ)"));
  return real_.MapPages(mapping);
}

bool FaultyOs::AdviseHugePages(std::span<std::byte> mapping) {
  return TakeFault("AdviseHugePages").ok() && real_.AdviseHugePages(mapping);
}

}  // namespace rnicd
