#include "client/cpp/objects/attached_memory.h"

#include <chrono>
#include <optional>
#include <utility>

#include "base/status.h"
#include "base/system/os.h"
#include "client/cpp/channel/fd_socket.h"
#include "client/cpp/objects/batch_outcomes.h"
#include "client/cpp/objects/callers_memory.h"
#include "client/cpp/rings/system_memory.h"
#include "client/cpp/session/connection.h"
#include "wire/memory.h"

namespace rnicd::inline client {

namespace {

using Watch = std::unique_ptr<ProgressWatch::Watch>;

// Extension of a call's timeout for making `bytes`: a busy node makes 64 MiB per second.
std::chrono::milliseconds TimeToMake(uint64_t bytes) { return std::chrono::milliseconds((bytes >> 26) * 1000); }

// `watch` is the caller's for as long as the request takes.
v1::AllocateMemoryRequest AllocateRequest(Connection& connection, const AllocateOptions& options, Watch& watch) {
  v1::AllocateMemoryRequest request;
  request.set_size(options.size);
  // Larger pages of the pool might not fit to the address.
  const PageSize automatic = options.address.value == 0 ? PageSize::kAuto : PageSize::k4KiB;
  const PageSize page_size = options.page_size == PageSize::kAuto ? automatic : options.page_size;
  request.set_page_size(page_size == PageSize::kAuto ? v1::PAGE_SIZE_AUTO
                                                     : wire::PageSizeToWire(static_cast<uint64_t>(page_size)));
  if (options.numa_node.has_value()) {
    request.set_numa_node(*options.numa_node);
  }
  if (options.on_progress) {
    connection.events().ExpectCallbacks();
    watch = connection.progress().Add(options.on_progress);
    request.set_progress_context(watch->context());
  }
  return request;
}

v1::SealMemoryRequest SealRequest(MemoryObjectId id) {
  v1::SealMemoryRequest request;
  request.set_memory_id(id.value);
  return request;
}

}  // namespace

absl::StatusOr<std::shared_ptr<AttachedMemory>> AttachedMemory::AllocateUnsealed(std::shared_ptr<Connection> connection,
                                                                                 const AllocateOptions& options) {
  Watch watch;
  const v1::AllocateMemoryRequest request = AllocateRequest(*connection, options, watch);
  RNICD_ASSIGN_OR_RETURN(const v1::AllocateMemoryResponse response,
                         connection->Call(kAllocateMemory, request, TimeToMake(options.size)));
  return Attach(std::move(connection), response, options);
}

absl::StatusOr<std::shared_ptr<AttachedMemory>> AttachedMemory::Allocate(std::shared_ptr<Connection> connection,
                                                                         const AllocateOptions& options) {
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<AttachedMemory> memory, AllocateUnsealed(std::move(connection), options));
  RNICD_RETURN_IF_ERROR(memory->Seal());
  return memory;
}

absl::StatusOr<std::shared_ptr<AttachedMemory>> AttachedMemory::Attach(std::shared_ptr<Connection> connection,
                                                                       const v1::AllocateMemoryResponse& allocated,
                                                                       const AllocateOptions& options) {
  std::shared_ptr<AttachedMemory> memory(
      new AttachedMemory(std::move(connection), MemoryObjectId{allocated.memory_id()}));
  memory->from_pool_ = allocated.from_pool();
  memory->transparent_huge_pages_ = allocated.transparent_huge_pages();
  RNICD_ASSIGN_OR_RETURN(const UniqueFd fd,
                         FetchDescriptor(memory->connection_->fd_socket_path(), allocated.fd_ticket(),
                                         memory->connection_->options().call_deadline));
  RNICD_RETURN_IF_ERROR(memory->Map(fd.get(), options.size, options.address));
  if (options.populate) {
    FillPageTable(memory->bytes_);
  }
  return memory;
}

absl::StatusOr<AttachedMemory::Outcomes> AttachedMemory::AllocateBatch(const std::shared_ptr<Connection>& connection,
                                                                       std::span<const AllocateOptions> options) {
  v1::BatchAllocateMemoryRequest request;
  std::vector<Watch> watches(options.size());
  std::chrono::milliseconds wait{0};
  for (size_t index = 0; index < options.size(); ++index) {
    *request.add_items() = AllocateRequest(*connection, options[index], watches[index]);
    wait += TimeToMake(options[index].size);
  }
  RNICD_ASSIGN_OR_RETURN(const v1::BatchAllocateMemoryResponse response,
                         connection->Call(kBatchAllocateMemory, request, wait));
  RNICD_RETURN_IF_ERROR(CheckOutcomeCount(response, options.size()));
  Outcomes outcomes;
  for (size_t index = 0; index < options.size(); ++index) {
    const v1::AllocateMemoryOutcome& outcome = response.outcomes(static_cast<int>(index));
    outcomes.push_back(outcome.has_error() ? FailureOf(outcome.error())
                                           : Attach(connection, outcome.response(), options[index]));
  }
  RNICD_RETURN_IF_ERROR(SealBatch(*connection, outcomes));
  return outcomes;
}

absl::Status AttachedMemory::SealBatch(Connection& connection, Outcomes& outcomes) {
  v1::BatchSealMemoryRequest request;
  std::vector<size_t> attached;
  for (size_t index = 0; index < outcomes.size(); ++index) {
    if (outcomes[index].ok()) {
      *request.add_items() = SealRequest((*outcomes[index])->id());
      attached.push_back(index);
    }
  }
  if (attached.empty()) {
    return absl::OkStatus();
  }
  RNICD_ASSIGN_OR_RETURN(const v1::BatchSealMemoryResponse response, connection.Call(kBatchSealMemory, request));
  RNICD_RETURN_IF_ERROR(CheckOutcomeCount(response, attached.size()));
  for (size_t item = 0; item < attached.size(); ++item) {
    const v1::SealMemoryOutcome& outcome = response.outcomes(static_cast<int>(item));
    if (outcome.has_error()) {
      outcomes[attached[item]] = FailureOf(outcome.error());
    } else {
      (*outcomes[attached[item]])->SetPageSize(outcome.response().page_size());
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<AttachedMemory>> AttachedMemory::Import(std::shared_ptr<Connection> connection, int fd,
                                                                       uint64_t size,
                                                                       std::optional<std::span<std::byte>> mapping) {
  v1::ImportMemoryRequest request;
  request.set_size(size);
  RNICD_ASSIGN_OR_RETURN(const v1::ImportMemoryResponse response, connection->Call(kImportMemory, request));
  std::shared_ptr<AttachedMemory> memory(
      new AttachedMemory(std::move(connection), MemoryObjectId{response.memory_id()}));
  // The descriptor is sent before the file is mapped: the daemon reports what is wrong with a file better than mmap
  // does.
  RNICD_RETURN_IF_ERROR(SendDescriptor(memory->connection_->fd_socket_path(), response.fd_ticket(), fd,
                                       memory->connection_->options().call_deadline));
  if (mapping.has_value()) {
    RNICD_RETURN_IF_ERROR(CheckMapping(*mapping, fd));
    memory->bytes_ = *mapping;
    memory->is_callers_mapping_ = true;
  } else {
    RNICD_RETURN_IF_ERROR(memory->Map(fd, size, {}));
  }
  RNICD_RETURN_IF_ERROR(memory->Seal());
  return memory;
}

absl::StatusOr<std::shared_ptr<AttachedMemory>> AttachedMemory::Replace(std::shared_ptr<Connection> connection,
                                                                        std::span<std::byte> pages) {
  RNICD_ASSIGN_OR_RETURN(const std::span<std::byte> spare, MapSpare(pages));
  absl::StatusOr<std::shared_ptr<AttachedMemory>> memory =
      Allocate(std::move(connection), {.size = pages.size(), .page_size = PageSize::k4KiB});
  if (absl::Status moved = memory.ok() ? MoveOver((*memory)->bytes_, pages) : memory.status(); !moved.ok()) {
    SystemOs().Unmap(spare).IgnoreError();
    return moved;
  }
  (*memory)->bytes_ = pages;
  (*memory)->spare_ = spare;
  (*memory)->file_ = FileUnder(pages);
  return memory;
}

void AttachedMemory::Detach() {
  if (spare_.empty()) {
    if (!is_callers_mapping_ && !bytes_.empty()) {
      SystemOs().Unmap(bytes_).IgnoreError();
    }
  } else if (!file_.has_value() || FileUnder(bytes_) != file_ || !MoveOver(spare_, bytes_).ok()) {
    SystemOs().Unmap(spare_).IgnoreError();
  }
}

AttachedMemory::~AttachedMemory() {
  Detach();
  if (!released_) {
    v1::ReleaseMemoryRequest request;
    request.set_memory_id(id_.value);
    connection_->Release(kReleaseMemory, request);
  }
}

absl::Status AttachedMemory::Map(int fd, uint64_t size, VirtualAddress address) {
  // A file shorter than its mapping would raise SIGBUS on first use instead of failing here.
  const std::optional<uint64_t> bytes = FileBytes(fd);
  if (!bytes.has_value()) {
    return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, "fd");
  }
  if (*bytes < size) {
    return MakeError(ErrorReason::MEMORY_TOO_SHORT, "size");
  }
  RNICD_ASSIGN_OR_RETURN(bytes_, address.value == 0 ? SystemOs().Map(fd, size) : MapAt(address, fd, size));
  return absl::OkStatus();
}

absl::Status AttachedMemory::Seal() {
  RNICD_ASSIGN_OR_RETURN(const v1::SealMemoryResponse response, connection_->Call(kSealMemory, SealRequest(id_)));
  SetPageSize(response.page_size());
  return absl::OkStatus();
}

void AttachedMemory::SetPageSize(v1::PageSize page_size) {
  page_size_ = static_cast<PageSize>(wire::PageBytesFromWire(page_size).value_or(kNdkPageBytes));
}

absl::Status AttachedMemory::Release() {
  v1::ReleaseMemoryRequest request;
  request.set_memory_id(id_.value);
  RNICD_RETURN_IF_ERROR(connection_->Call(kReleaseMemory, request).status());
  released_ = true;
  return absl::OkStatus();
}

}  // namespace rnicd::inline client
