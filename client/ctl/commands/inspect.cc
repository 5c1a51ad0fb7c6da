#include "base/status.h"
#include "client/admin/admin.h"
#include "client/admin/generations.h"
#include "client/ctl/commands/command_rows.h"
#include "client/ctl/line/common_options.h"
#include "client/ctl/line/option_values.h"
#include "client/ctl/output/views.h"

namespace rnicd::ctl {
namespace {

absl::StatusOr<uint64_t> SessionOf(const CommandLine& line) {
  if (!line.argument.has_value()) {
    return UsageError("the session is missing; 'rnicctl sessions' lists them");
  }
  return ParseId(*line.argument, "a session");
}

absl::Status RunInspect(const CommandLine& line, Output& output) {
  RNICD_ASSIGN_OR_RETURN(const uint64_t session_id, SessionOf(line));
  RNICD_ASSIGN_OR_RETURN(const v1::InspectSessionResponse session,
                         Generations(AdminSocketDir(line)).CallOwner(&Admin::Inspect, session_id));
  output.Result(InspectText(session), InspectJson(session));
  return absl::OkStatus();
}

absl::Status RunEvict(const CommandLine& line, Output& output) {
  RNICD_ASSIGN_OR_RETURN(const uint64_t session_id, SessionOf(line));
  RNICD_ASSIGN_OR_RETURN(const v1::EvictSessionResponse evicted,
                         Generations(AdminSocketDir(line)).CallOwner(&Admin::Evict, session_id));
  output.Result(EvictedText(session_id, evicted), EvictedJson(session_id, evicted));
  return absl::OkStatus();
}

}  // namespace

constinit const CommandSpec kInspectCommand = {
    .name = "inspect",
    .summary = "show one session: its owner, what it holds, its limits, its regions",
    .description =
        "Uses the admin socket, which belongs to the daemon's user. Of the regions the first 1000 are shown.\n",
    .examples = "rnicctl inspect 10584380199494624570\nrnicctl inspect 10584380199494624570 --json\n",
    .argument_name = "SESSION",
    .run = RunInspect,
};

constinit const CommandSpec kEvictCommand = {
    .name = "evict",
    .summary = "end a session: its tokens are invalid and its memory is released on return",
    .description =
        "Uses the admin socket, and is for operators only. The client receives the end of its session, and may\n"
        "open another one: revoke its grant, or change the policy, to keep it out.\n",
    .examples = "rnicctl evict 10584380199494624570\n",
    .argument_name = "SESSION",
    .run = RunEvict,
};

}  // namespace rnicd::ctl
