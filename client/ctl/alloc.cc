#include <array>

#include "base/status.h"
#include "client/ctl/command_rows.h"
#include "client/ctl/common_options.h"
#include "client/ctl/own_memory.h"

namespace rnicd::ctl {
namespace {

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

}  // namespace rnicd::ctl
