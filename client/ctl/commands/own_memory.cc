#include <array>
#include <chrono>
#include <string>
#include <utility>

#include "base/status.h"
#include "base/system/os.h"
#include "client/cpp/transport_failure.h"
#include "client/ctl/commands/command_rows.h"
#include "client/ctl/commands/hold.h"
#include "client/ctl/commands/memory_options.h"
#include "client/ctl/line/common_options.h"
#include "client/ctl/output/views.h"

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
         FailedWith(status, ErrorReason::DAEMON_DRAINING) || FailedWith(status, ErrorReason::DAEMON_HANDED_OVER) ||
         FailedWith(status, ErrorReason::GRANT_REFUSED);
}

// Gets the memory, registers it if requested, prints, holds, and releases everything.
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

constexpr std::array kAllocOptions = {
    OptionSpec{"--size", "SIZE", "bytes, or with a unit: 64KiB, 64MiB, 1GiB (needed)", ""},
    OptionSpec{"--page-size", "SIZE", "4KiB, 2MiB or 1GiB, or auto (default): the largest that the daemon has ready",
               "auto 4KiB 2MiB 1GiB"},
    OptionSpec{"--numa-node", "N", "the NUMA node to take the pages from (default: any)", ""},
    OptionSpec{"--hold", "DURATION", "how long to keep it: 500ms, 2s, 5m, forever (default 0s)", "0s 10s 5m forever"},
    OptionSpec{"--label", "TEXT", "shown to operators with the session (default: rnicctl)", ""},
    kGrantOption,
};

absl::Status RunAlloc(const CommandLine& line, Output& output) {
  RNICD_ASSIGN_OR_RETURN(const MemoryOptions options, AllocOptionsFrom(line));
  return RunOwnMemory(options, SocketDir(line), output);
}

constexpr std::array kRegisterOptions = {
    OptionSpec{"--size", "SIZE", "bytes, or with a unit: 64KiB, 64MiB, 1GiB (needed)", ""},
    OptionSpec{"--page-size", "SIZE", "4KiB, 2MiB or 1GiB, or auto (default): the largest that the daemon has ready",
               "auto 4KiB 2MiB 1GiB"},
    OptionSpec{"--numa-node", "N", "the NUMA node to take the pages from (default: any)", ""},
    OptionSpec{"--import", "", "import a memory file of this process instead of allocating", ""},
    OptionSpec{"--flags", "LIST",
               "rights: local-write,remote-read,remote-write,read-sink or none "
               "(default: remote-read,remote-write)",
               "none local-write remote-read remote-write read-sink"},
    OptionSpec{"--regions", "N", "number of regions of equal size, registered in one batch (default: 1)", ""},
    OptionSpec{"--adapter", "NAME", "a name from 'rnicctl adapters' (default: the first)", ""},
    OptionSpec{"--hold", "DURATION", "how long to keep it: 500ms, 2s, 5m, forever (default 0s)", "0s 10s 5m forever"},
    OptionSpec{"--reconnect", "", "begin anew when the session ends or the daemon is away, as while it restarts", ""},
    OptionSpec{"--label", "TEXT", "shown to operators with the session (default: rnicctl)", ""},
    kGrantOption,
};

absl::Status RunRegister(const CommandLine& line, Output& output) {
  RNICD_ASSIGN_OR_RETURN(const MemoryOptions options, RegisterOptionsFrom(line));
  return RunOwnMemory(options, SocketDir(line), output);
}

}  // namespace

constinit const CommandSpec kAllocCommand = {
    .name = "alloc",
    .summary = "allocate memory from the daemon, print its address, hold it",
    .description =
        "The memory belongs to this process: it is released when the hold ends, on SIGINT and SIGTERM,\n"
        "and when the process dies.\n",
    .examples =
        "rnicctl alloc --size 64MiB\n"
        "rnicctl alloc --size 1GiB --page-size 2MiB --numa-node 0 --hold forever\n",
    .options = kAllocOptions,
    .run = RunAlloc,
};

constinit const CommandSpec kRegisterCommand = {
    .name = "register",
    .summary = "register memory with the adapter, print its tokens, hold it",
    .description =
        "Allocates or imports memory, registers it, and prints what a peer needs: base address, length and\n"
        "remote token. Everything is released when the hold ends, on SIGINT and SIGTERM, and when the\n"
        "process dies. remote-write implies local-write.\n",
    .examples =
        "rnicctl register --size 64MiB\n"
        "rnicctl register --size 64MiB --flags remote-write --hold forever\n"
        "rnicctl register --size 1MiB --import --regions 16 --hold 10s --json\n",
    .options = kRegisterOptions,
    .run = RunRegister,
};

}  // namespace rnicd::ctl
