#include <array>

#include "base/status.h"
#include "client/ctl/command_rows.h"
#include "client/ctl/common_options.h"
#include "client/ctl/own_memory.h"

namespace rnicd::ctl {
namespace {

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
