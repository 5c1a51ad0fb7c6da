#include "base/status.h"
#include "client/admin/admin.h"
#include "client/admin/generations.h"
#include "client/ctl/commands/command_rows.h"
#include "client/ctl/line/common_options.h"
#include "client/ctl/output/views.h"

namespace rnicd::ctl {
namespace {

absl::Status RunSessions(const CommandLine& line, Output& output) {
  RNICD_ASSIGN_OR_RETURN(const auto sessions, Generations(AdminSocketDir(line)).List(&Admin::Sessions));
  output.Result(SessionsText(sessions.items, sessions.generations), SessionsJson(sessions.items, sessions.generations));
  return absl::OkStatus();
}

absl::Status RunRegions(const CommandLine& line, Output& output) {
  RNICD_ASSIGN_OR_RETURN(const auto regions, Generations(AdminSocketDir(line)).List(&Admin::Regions));
  output.Result(RegionsText(regions.items, regions.generations), RegionsJson(regions.items, regions.generations));
  return absl::OkStatus();
}

absl::Status RunListeners(const CommandLine& line, Output& output) {
  RNICD_ASSIGN_OR_RETURN(const auto listeners, Generations(AdminSocketDir(line)).List(&Admin::Listeners));
  output.Result(ListenersText(listeners.items, listeners.generations),
                ListenersJson(listeners.items, listeners.generations));
  return absl::OkStatus();
}

absl::Status RunConnections(const CommandLine& line, Output& output) {
  RNICD_ASSIGN_OR_RETURN(const auto connections, Generations(AdminSocketDir(line)).List(&Admin::Connections));
  output.Result(ConnectionsText(connections.items, connections.generations),
                ConnectionsJson(connections.items, connections.generations));
  return absl::OkStatus();
}

absl::Status RunTenants(const CommandLine& line, Output& output) {
  RNICD_ASSIGN_OR_RETURN(const auto tenants, Generations(AdminSocketDir(line)).List(&Admin::Tenants));
  output.Result(TenantsText(tenants.items, tenants.generations), TenantsJson(tenants.items, tenants.generations));
  return absl::OkStatus();
}

absl::Status RunDoors(const CommandLine& line, Output& output) {
  RNICD_ASSIGN_OR_RETURN(std::vector<v1::GrantInfo> grants, Admin(AdminSocketDir(line)).Grants());
  std::erase_if(grants, [](const v1::GrantInfo& grant) { return !grant.has_door(); });
  output.Result(DoorsText(grants), DoorsJson(grants));
  return absl::OkStatus();
}

}  // namespace

constinit const CommandSpec kSessionsCommand = {
    .name = "sessions",
    .summary = "list the sessions of all processes and what each holds",
    .description = "Uses the admin socket, which belongs to the daemon's user.\n",
    .examples = "rnicctl sessions\nrnicctl sessions --json\n",
    .run = RunSessions,
};

constinit const CommandSpec kRegionsCommand = {
    .name = "regions",
    .summary = "list the memory regions of all sessions, without their tokens",
    .description = "Uses the admin socket, which belongs to the daemon's user.\n",
    .examples = "rnicctl regions\nrnicctl regions --json\n",
    .run = RunRegions,
};

constinit const CommandSpec kListenersCommand = {
    .name = "listeners",
    .summary = "list where workloads listen for connections, by address and name",
    .description =
        "Uses the admin socket, which belongs to the daemon's user. REPORTED counts the requests that reached the\n"
        "workload, REFUSED those that did not.\n",
    .examples = "rnicctl listeners\nrnicctl listeners --json\n",
    .run = RunListeners,
};

constinit const CommandSpec kConnectionsCommand = {
    .name = "connections",
    .summary = "list the connections made by address or name, with their peers",
    .description =
        "Uses the admin socket, which belongs to the daemon's user. SIDE is passive where the workload listened; AGE "
        "is\n"
        "that of the state. SENT and RECEIVED are bytes of private data, which are never shown.\n",
    .examples = "rnicctl connections\nrnicctl connections --json\n",
    .run = RunConnections,
};

constinit const CommandSpec kTenantsCommand = {
    .name = "tenants",
    .summary = "list the tenants, what each holds over all its sessions, and its limits",
    .description =
        "Uses the admin socket, which belongs to the daemon's user. Lists tenants with a connection, a session or a\n"
        "grant. A bar shows how much of a limit is used; no bar means no limit. Where there are several generations "
        "of\n"
        "the daemon, the newest counts what the others hold as well.\n",
    .examples = "rnicctl tenants\nrnicctl tenants --json\n",
    .run = RunTenants,
};

constinit const CommandSpec kDoorsCommand = {
    .name = "doors",
    .summary = "list the grants with a door, and the connections at each",
    .description =
        "Uses the admin socket, which belongs to the daemon's user. REFUSED counts connections; STORMS how often none\n"
        "was accepted for a moment, because they came too fast.\n",
    .examples = "rnicctl doors\nrnicctl doors --json\n",
    .run = RunDoors,
};

}  // namespace rnicd::ctl
