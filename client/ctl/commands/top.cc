#include <array>
#include <limits>
#include <thread>
#include <utility>

#include "base/status.h"
#include "client/admin/admin.h"
#include "client/admin/generations.h"
#include "client/ctl/commands/command_rows.h"
#include "client/ctl/line/common_options.h"
#include "client/ctl/line/option_values.h"
#include "client/ctl/output/terminal.h"
#include "client/ctl/output/top_view.h"

namespace rnicd::ctl {
namespace {

constexpr int kInput = 0;
constexpr int kOutput = 1;
constexpr std::chrono::milliseconds kUsualInterval{2'000};
constexpr std::chrono::milliseconds kShortestInterval{100};
constexpr std::chrono::milliseconds kLongestInterval = std::chrono::hours(1);

constexpr std::array kTopOptions = {
    OptionSpec{"--interval", "DURATION", "time between two frames: 500ms, 2s (default), 1m", "500ms 1s 2s 10s"},
    OptionSpec{"--count", "N", "print this number of frames one after another, and exit", "1"},
};

absl::StatusOr<TopState> Fetch(Generations& generations) {
  TopState state;
  RNICD_ASSIGN_OR_RETURN(state.status, generations.Status());
  RNICD_ASSIGN_OR_RETURN(state.older, generations.OlderStatuses());
  RNICD_ASSIGN_OR_RETURN(Listing<v1::TenantInfo> tenants, generations.List(&Admin::Tenants));
  RNICD_ASSIGN_OR_RETURN(Listing<v1::SessionInfo> sessions, generations.List(&Admin::Sessions));
  state.tenants = std::move(tenants.items);
  state.tenant_generations = std::move(tenants.generations);
  state.sessions = std::move(sessions.items);
  state.session_generations = std::move(sessions.generations);
  return state;
}

// Runs until the user quits.
absl::Status ShowOnTerminal(const std::string& admin_socket_dir, std::chrono::milliseconds interval) {
  Terminal terminal(kInput, kOutput);
  Generations generations(admin_socket_dir);
  do {
    RNICD_ASSIGN_OR_RETURN(TopState state, Fetch(generations));
    terminal.Show(TopLines(std::move(state), terminal.size()));
  } while (terminal.Wait(interval));
  return absl::OkStatus();
}

absl::Status PrintFrames(const std::string& admin_socket_dir, std::chrono::milliseconds interval, uint64_t count,
                         Output& output) {
  Generations generations(admin_socket_dir);
  for (uint64_t number = 1;; ++number) {
    RNICD_ASSIGN_OR_RETURN(const TopState state, Fetch(generations));
    std::string text = number == 1 ? "" : "\n";
    for (const std::string& line : TopLines(state, {})) {
      text += line + "\n";
    }
    output.Result(text, TopJson(state));
    if (number == count || !output.written().ok()) {
      return output.written();
    }
    std::this_thread::sleep_for(interval);
  }
}

absl::Status RunTop(const CommandLine& line, Output& output) {
  RNICD_ASSIGN_OR_RETURN(const std::chrono::milliseconds interval,
                         DurationOr(line, "--interval", kUsualInterval, kShortestInterval, kLongestInterval));
  RNICD_ASSIGN_OR_RETURN(const uint64_t count, NumberOr(line, "--count", 0, 1, std::numeric_limits<uint32_t>::max()));
  if (count == 0 && !output.json() && Terminal::IsThere(kInput, kOutput)) {
    return ShowOnTerminal(AdminSocketDir(line), interval);
  }
  return PrintFrames(AdminSocketDir(line), interval, count, output);
}

}  // namespace

constinit const CommandSpec kTopCommand = {
    .name = "top",
    .summary = "watch the node, its tenants and its sessions, those with the most pinned first",
    .description =
        "Uses the admin socket, which belongs to the daemon's user. On a terminal the frame is redrawn until q\n"
        "or Ctrl-C is pressed; with --count, with --json or into a pipe, frames follow one another.\n",
    .examples = "rnicctl top\nrnicctl top --interval 500ms\nrnicctl top --count 1 --json\n",
    .options = kTopOptions,
    .run = RunTop,
};

}  // namespace rnicd::ctl
