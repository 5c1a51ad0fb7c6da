#include "client/cpp/attached_memory.h"

#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "base/errno_status.h"
#include "base/os.h"
#include "base/status.h"
#include "client/cpp/connection.h"
#include "client/cpp/fd_socket.h"
#include "wire/memory.h"

namespace rnicd::inline client {

absl::StatusOr<std::shared_ptr<AttachedMemory>> AttachedMemory::Allocate(std::shared_ptr<Connection> connection,
                                                                         const AllocateOptions& options) {
  v1::AllocateMemoryRequest request;
  request.set_size(options.size);
  request.set_page_size(options.page_size == PageSize::kAuto
                            ? v1::PAGE_SIZE_AUTO
                            : wire::PageSizeToWire(static_cast<uint64_t>(options.page_size)));
  if (options.numa_node.has_value()) {
    request.set_numa_node(*options.numa_node);
  }
  std::unique_ptr<ProgressWatch::Watch> progress;
  if (options.on_progress) {
    progress = connection->progress().Add(options.on_progress);
    request.set_progress_context(progress->context());
  }
  RNICD_ASSIGN_OR_RETURN(const v1::AllocateMemoryResponse response,
                         connection->Call(&v1::MemoryService::Stub::AllocateMemory, request));
  std::shared_ptr<AttachedMemory> memory(
      new AttachedMemory(std::move(connection), MemoryObjectId{response.memory_id()}));
  memory->from_pool_ = response.from_pool();
  memory->transparent_huge_pages_ = response.transparent_huge_pages();
  RNICD_ASSIGN_OR_RETURN(const UniqueFd fd, FetchDescriptor(memory->connection_->fd_socket_path(), response.fd_ticket(),
                                                            memory->connection_->options().call_deadline));
  RNICD_RETURN_IF_ERROR(memory->Map(fd.get(), options.size));
  RNICD_RETURN_IF_ERROR(memory->Seal());
  return memory;
}

absl::StatusOr<std::shared_ptr<AttachedMemory>> AttachedMemory::Import(std::shared_ptr<Connection> connection, int fd,
                                                                       uint64_t size) {
  v1::ImportMemoryRequest request;
  request.set_size(size);
  RNICD_ASSIGN_OR_RETURN(const v1::ImportMemoryResponse response,
                         connection->Call(&v1::MemoryService::Stub::ImportMemory, request));
  std::shared_ptr<AttachedMemory> memory(
      new AttachedMemory(std::move(connection), MemoryObjectId{response.memory_id()}));
  // The descriptor is sent before the file is mapped: the daemon reports what is wrong with a file better than mmap
  // does.
  RNICD_RETURN_IF_ERROR(SendDescriptor(memory->connection_->fd_socket_path(), response.fd_ticket(), fd,
                                       memory->connection_->options().call_deadline));
  RNICD_RETURN_IF_ERROR(memory->Map(fd, size));
  RNICD_RETURN_IF_ERROR(memory->Seal());
  return memory;
}

AttachedMemory::~AttachedMemory() {
  if (!bytes_.empty()) {
    LinuxOs().Unmap(bytes_).IgnoreError();
  }
  if (!released_) {
    v1::ReleaseMemoryRequest request;
    request.set_memory_id(id_.value);
    connection_->Release(&v1::MemoryService::Stub::ReleaseMemory, request);
  }
}

absl::Status AttachedMemory::Map(int fd, uint64_t size) {
  // A file shorter than its mapping would raise SIGBUS on first use instead of failing here.
  struct stat file = {};
  if (fstat(fd, &file) != 0) {
    return ErrnoStatus("fstat", errno);
  }
  if (static_cast<uint64_t>(file.st_size) < size) {
    return MakeError(ErrorReason::MEMORY_TOO_SHORT, "size");
  }
  RNICD_ASSIGN_OR_RETURN(bytes_, LinuxOs().Map(fd, size));
  return absl::OkStatus();
}

absl::Status AttachedMemory::Seal() {
  v1::SealMemoryRequest request;
  request.set_memory_id(id_.value);
  RNICD_ASSIGN_OR_RETURN(const v1::SealMemoryResponse response,
                         connection_->Call(&v1::MemoryService::Stub::SealMemory, request));
  const uint64_t page_bytes = wire::PageBytesFromWire(response.page_size()).value_or(kNdkPageBytes);
  page_size_ = static_cast<PageSize>(page_bytes);
  return absl::OkStatus();
}

absl::Status AttachedMemory::Release() {
  v1::ReleaseMemoryRequest request;
  request.set_memory_id(id_.value);
  RNICD_RETURN_IF_ERROR(connection_->Call(&v1::MemoryService::Stub::ReleaseMemory, request).status());
  released_ = true;
  return absl::OkStatus();
}

}  // namespace rnicd::inline client
