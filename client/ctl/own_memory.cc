#include "client/ctl/own_memory.h"

#include <chrono>
#include <utility>

#include "base/os.h"
#include "base/status.h"
#include "client/cpp/transport_failure.h"
#include "client/ctl/hold.h"
#include "client/ctl/views.h"

namespace rnicd::ctl {
namespace {

constexpr std::chrono::seconds kRetryPause{1};

absl::StatusOr<Memory> GetMemory(const Client& client, const MemoryOptions& options, Output& output) {
  if (!options.import) {
    AllocateOptions wanted = options.memory;
    wanted.on_progress = [&output](uint64_t done, uint64_t size) { output.Progress(ProgressLine(done, size)); };
    absl::StatusOr<Memory> memory = Memory::Allocate(client, wanted);
    output.Progress("");
    return memory;
  }
  const PageSize page_size = options.memory.page_size == PageSize::kAuto ? PageSize::k4KiB : options.memory.page_size;
  RNICD_ASSIGN_OR_RETURN(const UniqueFd file,
                         SystemOs().CreateMemoryFile(options.memory.size, static_cast<uint64_t>(page_size)));
  return Memory::Import(client, file.get(), options.memory.size);
}

absl::StatusOr<std::vector<MemoryRegion>> RegisterAll(const Memory& memory, const MemoryOptions& options) {
  std::vector<MemoryRegion> regions;
  if (options.regions == 1) {
    RNICD_ASSIGN_OR_RETURN(MemoryRegion region, MemoryRegion::Register(memory, options.flags));
    regions.push_back(std::move(region));
  } else if (options.regions > 1) {
    const std::vector<std::span<const std::byte>> parts = SplitEvenly(memory.bytes(), options.regions);
    RNICD_ASSIGN_OR_RETURN(MemoryRegion::Outcomes outcomes, MemoryRegion::RegisterBatch(memory, parts, options.flags));
    for (absl::StatusOr<MemoryRegion>& outcome : outcomes) {
      RNICD_RETURN_IF_ERROR(outcome.status());
      regions.push_back(*std::move(outcome));
    }
  }
  return regions;
}

OwnMemory Describe(const Client& client, const Memory& memory, const std::vector<MemoryRegion>& regions,
                   const MemoryOptions& options) {
  OwnMemory own{.session_id = client.session_id().value,
                .memory_id = memory.id().value,
                .address = memory.address().value,
                .size = memory.size(),
                .page_bytes = static_cast<uint64_t>(memory.page_size()),
                .imported = options.import,
                .from_pool = memory.from_pool(),
                .transparent_huge_pages = memory.transparent_huge_pages(),
                .flags = options.flags};
  for (const MemoryRegion& region : regions) {
    own.regions.push_back(OwnRegion{.mr_id = region.id().value,
                                    .base_virtual_address = region.base_address().value,
                                    .length = region.length(),
                                    .local_token = region.local_token().value,
                                    .remote_token = region.remote_token().value});
  }
  return own;
}

absl::Status HoldOnce(const MemoryOptions& options, const std::string& socket_dir, Hold& hold, Output& output) {
  RNICD_ASSIGN_OR_RETURN(
      Client client,
      Client::Connect({.socket_dir = socket_dir,
                       .label = options.label,
                       .grant = options.grant,
                       .adapter_name = options.adapter_name,
                       .on_session_ended = [&hold](const absl::Status& why) { hold.OnSessionEnded(why); }}));
  RNICD_ASSIGN_OR_RETURN(Memory memory, GetMemory(client, options, output));
  RNICD_ASSIGN_OR_RETURN(std::vector<MemoryRegion> regions, RegisterAll(memory, options));
  const OwnMemory own = Describe(client, memory, regions, options);
  output.Result(OwnMemoryText(own), OwnMemoryJson(own));
  RNICD_RETURN_IF_ERROR(output.written());
  RNICD_RETURN_IF_ERROR(hold.Wait(options.hold));
  RNICD_RETURN_IF_ERROR(MemoryRegion::CloseBatch(std::move(regions)));
  RNICD_RETURN_IF_ERROR(memory.Release());
  return client.Close().status();
}

// The daemon restarts, or has not been told of the grant again yet.
bool MayPass(const absl::Status& status) {
  return IsTransportFailure(status) || FailedWith(status, ErrorReason::SESSION_ENDING) ||
         FailedWith(status, ErrorReason::DAEMON_DRAINING) || FailedWith(status, ErrorReason::GRANT_REFUSED);
}

}  // namespace

absl::Status RunOwnMemory(const MemoryOptions& options, const std::string& socket_dir, Output& output) {
  Hold hold;
  absl::Status status = HoldOnce(options, socket_dir, hold, output);
  absl::Status printed;
  while (options.reconnect && MayPass(status)) {
    if (status != printed) {
      output.Error(status);
      printed = status;
    }
    if (!hold.Pause(kRetryPause)) {
      return absl::OkStatus();
    }
    status = HoldOnce(options, socket_dir, hold, output);
  }
  return status;
}

}  // namespace rnicd::ctl
