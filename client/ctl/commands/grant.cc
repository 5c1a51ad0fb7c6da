#include "base/status.h"
#include "client/admin/admin.h"
#include "client/ctl/commands/command_rows.h"
#include "client/ctl/commands/grant_options.h"
#include "client/ctl/line/common_options.h"
#include "client/ctl/line/option_values.h"
#include "client/ctl/output/views.h"

namespace rnicd::ctl {
namespace {

// A grant whose secret nobody has read is revoked.
absl::Status CreateGrant(const CommandLine& line, Output& output) {
  RNICD_ASSIGN_OR_RETURN(const v1::CreateGrantRequest request, GrantRequestFrom(line));
  Admin admin(AdminSocketDir(line));
  RNICD_ASSIGN_OR_RETURN(const v1::CreateGrantResponse grant, admin.CreateGrant(request));
  output.Result(line.Has("--secret-only") ? grant.secret() + "\n" : NewGrantText(grant), NewGrantJson(grant));
  if (output.written().ok()) {
    return absl::OkStatus();
  }
  const absl::StatusOr<uint64_t> revoked = admin.RevokeGrant(grant.grant_id());
  const std::string name = "; grant " + std::to_string(grant.grant_id());
  return absl::DataLossError(
      std::string(output.written().message()) +
      (revoked.ok() ? name + " was revoked again" : name + " exists: " + std::string(revoked.status().message())));
}

absl::Status ListGrants(const CommandLine& line, Output& output) {
  RNICD_ASSIGN_OR_RETURN(const std::vector<v1::GrantInfo> grants, Admin(AdminSocketDir(line)).Grants());
  output.Result(GrantsText(grants), GrantsJson(grants));
  return absl::OkStatus();
}

absl::Status RevokeGrant(const CommandLine& line, Output& output) {
  if (!line.operand.has_value()) {
    return UsageError("the grant is missing; 'rnicctl grant list' shows their ids");
  }
  RNICD_ASSIGN_OR_RETURN(const uint64_t grant_id, ParseId(*line.operand, "a grant"));
  RNICD_ASSIGN_OR_RETURN(const uint64_t sessions, Admin(AdminSocketDir(line)).RevokeGrant(grant_id));
  output.Result("revoked grant " + std::to_string(grant_id) + "; " + Counted(sessions, "session") + " ended by it\n",
                {{"grant_id", std::to_string(grant_id)}, {"sessions_ended", sessions}});
  return absl::OkStatus();
}

absl::Status RunGrant(const CommandLine& line, Output& output) {
  const std::string verb = line.argument.value_or("");
  if (verb != "create" && verb != "list" && verb != "revoke") {
    return UsageError("say 'rnicctl grant create', 'rnicctl grant list' or 'rnicctl grant revoke ID'");
  }
  for (const OptionSpec& option : kGrantOptions) {
    if (verb != "create" && line.Has(option.name)) {
      return UsageError("option " + std::string(option.name) + " is for 'rnicctl grant create'");
    }
  }
  if (verb != "revoke" && line.operand.has_value()) {
    return UsageError("unexpected argument '" + *line.operand + "'");
  }
  if (verb == "create") {
    return CreateGrant(line, output);
  }
  return verb == "list" ? ListGrants(line, output) : RevokeGrant(line, output);
}

}  // namespace

constinit const CommandSpec kGrantCommand = {
    .name = "grant",
    .summary = "create, list and revoke grants: a secret or a door, by which callers are a separate tenant",
    .description =
        "Uses the admin socket. 'create' prints the secret, which is shown only once: keep it confidential, and pass\n"
        "it to the workload as the environment variable RNICD_GRANT. 'revoke' ends the sessions of a grant.\n"
        "With --door it prints a directory with sockets instead, and whoever connects to them is admitted as the "
        "grant:\n"
        "mount it read-only into one container, and name it there in RNICD_SOCKET_DIR. 'rnicctl doors' lists them.\n"
        "In lists 0 means no limit: only the node's limits apply.\n",
    .examples =
        "rnicctl grant create --name training --lifetime 1h --pinned 64MiB --sessions 2 --rate 1000\n"
        "rnicctl grant create --name pod-7 --pod-uid 0d9e1b5c-90a4-4a3c-8f0e-6d7d5b3f2c11 --limits cq_entries=4096\n"
        "RNICD_GRANT=$(rnicctl grant create --name job-3 --secret-only)\n"
        "rnicctl grant create --name web --door\n"
        "rnicctl grant create --name node-a --connect 10.98.0.0/16 --accept 10.98.0.0/16 --listen 10.98.0.1\n"
        "rnicctl grant list\n"
        "rnicctl grant revoke 8151434532120913337\n",
    .options = kGrantOptions,
    .argument_name = "create|list|revoke",
    .argument_choices = "create list revoke",
    .operand_name = "ID",
    .run = RunGrant,
};

}  // namespace rnicd::ctl
