#include <array>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "client/admin/generations.h"
#include "client/ctl/commands/command_rows.h"
#include "client/ctl/line/common_options.h"
#include "client/ctl/line/option_values.h"
#include "client/ctl/output/views.h"

namespace rnicd::ctl {
namespace {

constexpr std::chrono::milliseconds kLongestWait = std::chrono::days(7);
constexpr std::chrono::milliseconds kBetweenLooks{200};

constexpr std::array kDrainOptions = {
    OptionSpec{"--resume", "", "end the draining instead", ""},
    OptionSpec{"--wait", "DURATION", "how long to wait until the clients have released everything: 500ms, 30s, 5m",
               "10s 30s 5m"},
};

bool NothingIsLeft(const v1::DrainResponse& drain) {
  return drain.sessions() == 0 && drain.regions() == 0 && drain.pinned_bytes() == 0;
}

// The same figures as Drain returns, without draining again.
absl::StatusOr<v1::DrainResponse> Look(Generations& daemon) {
  RNICD_ASSIGN_OR_RETURN(const v1::GetStatusResponse status, daemon.Status());
  RNICD_ASSIGN_OR_RETURN(const std::vector<v1::GetStatusResponse> older, daemon.OlderStatuses());
  v1::DrainResponse left;
  left.set_draining(status.draining());
  left.set_sessions(status.sessions());
  for (const v1::GetStatusResponse& each : older) {
    left.set_sessions(left.sessions() + each.sessions());
  }
  left.set_regions(UseOf(status.resources(), "regions").used());
  left.set_pinned_bytes(UseOf(status.resources(), "pinned_bytes").used());
  return left;
}

// `left` is the initial number, and at the end the remaining one. Text output shows each change.
absl::Status WaitUntilDrained(Generations& daemon, std::chrono::milliseconds wait, v1::DrainResponse& left,
                              Output& output) {
  const Instant deadline = Instant::clock::now() + wait;
  while (!NothingIsLeft(left)) {
    if (Instant::clock::now() >= deadline) {
      return absl::DeadlineExceededError("not everything was released in time");
    }
    std::this_thread::sleep_for(kBetweenLooks);
    const std::string before = DrainText(left);
    RNICD_ASSIGN_OR_RETURN(left, Look(daemon));
    if (!left.draining()) {
      return absl::AbortedError("another operator ended the draining");
    }
    if (!output.json() && !NothingIsLeft(left) && DrainText(left) != before) {
      output.Text(DrainText(left));
    }
  }
  return absl::OkStatus();
}

absl::Status RunDrain(const CommandLine& line, Output& output) {
  const bool resume = line.Has("--resume");
  if (resume && line.Has("--wait")) {
    return UsageError("options --resume and --wait exclude each other");
  }
  RNICD_ASSIGN_OR_RETURN(const std::chrono::milliseconds wait,
                         DurationOr(line, "--wait", std::chrono::milliseconds(0), {}, kLongestWait));
  Generations daemon(AdminSocketDir(line));
  RNICD_ASSIGN_OR_RETURN(v1::DrainResponse left, daemon.Drain(resume));
  absl::Status status;
  if (line.Has("--wait")) {
    if (!output.json() && !NothingIsLeft(left)) {
      output.Text(DrainText(left));
    }
    status = WaitUntilDrained(daemon, wait, left, output);
  }
  output.Result(DrainText(left), DrainJson(left));
  return status;
}

}  // namespace

constinit const CommandSpec kDrainCommand = {
    .name = "drain",
    .summary = "accept no new session, memory or registration; show what is left",
    .description =
        "Uses the admin socket, and is for operators only. Existing sessions continue until their owners end\n"
        "them; evict ends one at once. With --wait the exit code is 0 when nothing is left, and 1 on timeout.\n",
    .examples =
        "rnicctl drain\n"
        "rnicctl drain --wait 5m && systemctl stop 'rnicd@*'\n"
        "rnicctl drain --resume\n",
    .options = kDrainOptions,
    .run = RunDrain,
};

}  // namespace rnicd::ctl
