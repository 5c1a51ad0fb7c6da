#include <array>
#include <limits>

#include "base/status.h"
#include "base/units.h"
#include "client/admin/amounts.h"
#include "client/ctl/commands/command_rows.h"
#include "client/ctl/line/common_options.h"
#include "client/ctl/line/option_values.h"
#include "client/ctl/trials/pingpong_sides.h"

namespace rnicd::ctl {
namespace {

constexpr uint64_t kPingpongRoundsMax = 1'000'000;
constexpr std::chrono::milliseconds kUsualPeerWait{30'000};
constexpr std::chrono::milliseconds kLongestPeerWait = std::chrono::days(7);

constexpr std::array kPingpongOptions = {
    OptionSpec{"--listen", "HOST:PORT", "offer memory, and wait here for the other side: [::]:7471 for any address",
               ""},
    OptionSpec{"--connect", "HOST:PORT", "write and read the memory of the side that listens there", ""},
    OptionSpec{"--size", "SIZE", "bytes, or with a unit: 64KiB, 1MiB (default), 1GiB; the same on both sides", ""},
    OptionSpec{"--rounds", "N", "of the side that connects: how often it writes and reads all of it (default: 100)",
               "1 100 1000"},
    OptionSpec{"--adapter", "NAME", "a name from 'rnicctl adapters' (default: the first)", ""},
    OptionSpec{"--wait", "DURATION", "how long to wait for the other side, and for each message of it (default: 30s)",
               "10s 30s 5m"},
    kGrantOption,
};

absl::StatusOr<uint64_t> PingpongSizeOf(const CommandLine& line) {
  const std::string size = line.Value("--size").value_or("1MiB");
  const std::optional<uint64_t> bytes = ParseSize(size);
  if (!bytes.has_value() || *bytes == 0 || *bytes % kNdkPageBytes != 0) {
    return BadValue("--size", size, "a whole number of 4 KiB pages such as 64KiB, 1MiB or 1GiB");
  }
  return *bytes;
}

absl::StatusOr<PingpongOptions> PingpongOptionsFrom(const CommandLine& line) {
  PingpongOptions options{.socket_dir = SocketDir(line),
                          .grant = GrantOf(line),
                          .adapter = line.Value("--adapter").value_or(""),
                          .listens = line.Has("--listen")};
  if (options.listens == line.Has("--connect")) {
    return UsageError("say either --listen HOST:PORT or --connect HOST:PORT");
  }
  if (options.listens && line.Has("--rounds")) {
    return UsageError("option --rounds is for the side that connects");
  }
  const std::string_view role = options.listens ? "--listen" : "--connect";
  const std::optional<HostPort> where = ParseHostPort(*line.Value(role));
  if (!where.has_value()) {
    return BadValue(role, *line.Value(role), "a host and a port such as 10.0.0.7:7471 or [::]:7471");
  }
  options.where = *where;
  RNICD_ASSIGN_OR_RETURN(options.bytes, PingpongSizeOf(line));
  RNICD_ASSIGN_OR_RETURN(options.rounds, NumberOr(line, "--rounds", 100, 1, kPingpongRoundsMax));
  RNICD_ASSIGN_OR_RETURN(options.wait,
                         DurationOr(line, "--wait", kUsualPeerWait, std::chrono::milliseconds(1), kLongestPeerWait));
  return options;
}

absl::Status RunPingpongCommand(const CommandLine& line, Output& output) {
  RNICD_ASSIGN_OR_RETURN(const PingpongOptions options, PingpongOptionsFrom(line));
  PingpongReport report;
  const absl::Status status = RunPingpong(options, StepPrinter(output), report);
  output.Result(status.ok() ? PingpongVerdict(report) : "", PingpongJson(report));
  return status;
}

}  // namespace

constinit const CommandSpec kPingpongCommand = {
    .name = "pingpong",
    .summary = "two processes: one writes into the other's memory by RDMA and reads it, every byte checked",
    .description =
        "Start it twice, on nodes whose cards reach each other; with a card in software inside of the daemon\n"
        "('soft'), on one node. The side that listens registers memory; over TCP the sides exchange addresses of\n"
        "queue pairs, the token and the seeds of patterns, and nothing else. TCP is not encrypted, and the first\n"
        "peer that connects gets the token: for tests. If any check fails, the exit code is 1.\n",
    .examples =
        "rnicctl pingpong --listen [::]:7471\n"
        "rnicctl pingpong --connect node-a:7471\n"
        "rnicctl pingpong --connect node-a:7471 --size 64KiB --rounds 10000 --adapter mlx5_0 --json\n",
    .options = kPingpongOptions,
    .run = RunPingpongCommand,
};

}  // namespace rnicd::ctl
