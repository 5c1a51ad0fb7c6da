#include "client/ctl/line/common_options.h"

#include <array>

#include "base/files/paths.h"
#include "client/cpp/client_options.h"

namespace rnicd::ctl {
namespace {

constexpr std::array kCommonOptions = {
    OptionSpec{"--socket-dir", "DIR", "directory of the workload sockets (default: $RNICD_SOCKET_DIR or /run/rnicd)",
               "@directory"},
    OptionSpec{"--admin-socket-dir", "DIR", "directory of the admin socket (default: the socket directory plus -admin)",
               "@directory"},
    OptionSpec{"--json", "", "print JSON: bytes and milliseconds as numbers, ids and addresses as strings", ""},
    OptionSpec{"--help", "", "explain the command; also -h", ""},
};

}  // namespace

std::span<const OptionSpec> CommonOptions() { return kCommonOptions; }

std::string GrantOf(const CommandLine& line) { return line.Value(kGrantOption.name).value_or(""); }

std::string SocketDir(const CommandLine& line) { return line.Value("--socket-dir").value_or(DefaultSocketDir()); }

std::string AdminSocketDir(const CommandLine& line) {
  return line.Value("--admin-socket-dir").value_or(PathBeside(SocketDir(line), "-admin"));
}

}  // namespace rnicd::ctl
