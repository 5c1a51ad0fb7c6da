#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "client/admin/admin.h"
#include "client/ctl/commands/command_rows.h"
#include "client/ctl/commands/systemctl.h"
#include "client/ctl/line/common_options.h"
#include "client/ctl/output/views.h"

namespace rnicd::ctl {
namespace {

constexpr std::array kUpgradeOptions = {
    OptionSpec{"--dry-run", "", "say what would be done, and do nothing", ""},
};

// The two services of the template rnicd@.service.
struct Slots {
  std::string serving = "rnicd@a";
  std::string free = "rnicd@b";
};

absl::StatusOr<std::string> StateOf(const std::string& unit) {
  return Systemctl({"show", "--property=ActiveState", "--value", unit});
}

absl::StatusOr<Slots> FindSlots() {
  Slots slots;
  RNICD_ASSIGN_OR_RETURN(std::string serving, StateOf(slots.serving));
  RNICD_ASSIGN_OR_RETURN(std::string free, StateOf(slots.free));
  if (free == "active") {
    std::swap(serving, free);
    std::swap(slots.serving, slots.free);
  }
  if (serving != "active") {
    return absl::FailedPreconditionError("neither rnicd@a nor rnicd@b is active: 'systemctl start rnicd@a'");
  }
  if (free != "inactive" && free != "failed") {
    return absl::FailedPreconditionError(absl::StrCat(
        slots.free, " is ", free,
        ": it has sessions since the last upgrade, 'rnicctl status' counts them. To end them, 'systemctl kill ",
        slots.free, "'"));
  }
  return slots;
}

std::string StateText(const std::string& slot, const v1::GetStatusResponse& status) {
  return absl::StrCat(slot, " serves: version ", status.version(), ", generation ", status.generation(), ", ",
                      Counted(status.sessions(), "session"), "\n");
}

std::string PlanText(const Slots& slots) {
  return absl::StrCat(
      "1. systemctl start ", slots.free, "\n   It is the installed version, and takes over sockets, grants ",
      "and new sessions. If it cannot, ", slots.serving, " serves as before.\n2. systemctl stop --no-block ",
      slots.serving, "\n   It serves its sessions until they have ended, or the deadline has come ",
      "(--handover_deadline_ms).\n");
}

Json StateJson(const std::string& slot, const v1::GetStatusResponse& status) {
  return {{"slot", slot},
          {"version", status.version()},
          {"generation", status.generation()},
          {"sessions", status.sessions()}};
}

// Step 1. Returns what the new daemon says of itself.
absl::StatusOr<v1::GetStatusResponse> TakeOver(const std::string& directory, const Slots& slots, int32_t old_pid) {
  const std::string hint =
      absl::StrCat("; ", slots.serving, " serves as before. The reason: 'journalctl -u ", slots.free, "'");
  if (const absl::Status started = Systemctl({"start", slots.free}).status(); !started.ok()) {
    return absl::UnavailableError(absl::StrCat(started.message(), hint));
  }
  RNICD_ASSIGN_OR_RETURN(v1::GetStatusResponse status, Admin(directory).Status());
  if (status.pid() == old_pid) {
    return absl::FailedPreconditionError(absl::StrCat(slots.free, " has started but not taken over", hint));
  }
  return status;
}

absl::Status RunUpgrade(const CommandLine& line, Output& output) {
  RNICD_ASSIGN_OR_RETURN(const Slots slots, FindSlots());
  // Each call has a connection of its own: one that is open stays with the old daemon.
  RNICD_ASSIGN_OR_RETURN(const v1::GetStatusResponse before, Admin(AdminSocketDir(line)).Status());
  Json json = {{"from", StateJson(slots.serving, before)}, {"to", {{"slot", slots.free}}}};
  const std::string plan = StateText(slots.serving, before) + PlanText(slots);
  if (line.Has("--dry-run")) {
    output.Result(plan + "Nothing was done.\n", json);
    return absl::OkStatus();
  }
  if (!output.json()) {
    output.Text(plan);
  }
  RNICD_ASSIGN_OR_RETURN(const v1::GetStatusResponse after, TakeOver(AdminSocketDir(line), slots, before.pid()));
  RNICD_RETURN_IF_ERROR(Systemctl({"stop", "--no-block", slots.serving}).status());
  json["to"] = StateJson(slots.free, after);
  output.Result(StateText(slots.free, after), json);
  return absl::OkStatus();
}

}  // namespace

constinit const CommandSpec kUpgradeCommand = {
    .name = "upgrade",
    .summary = "change over to the installed version of the daemon; sessions continue",
    .description =
        "Starts the other of the systemd services rnicd@a and rnicd@b, waits until it has taken over, and lets the\n"
        "old one end with its last session. It says what it does. In Kubernetes a rollout does the same.\n",
    .examples = "rnicctl upgrade --dry-run\nrnicctl upgrade\n",
    .options = kUpgradeOptions,
    .run = RunUpgrade,
};

}  // namespace rnicd::ctl
