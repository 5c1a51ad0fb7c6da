#include "base/status.h"
#include "client/admin/admin.h"
#include "client/ctl/commands/command_rows.h"
#include "client/ctl/line/common_options.h"
#include "client/ctl/output/views.h"

namespace rnicd::ctl {
namespace {

absl::Status RunSessions(const CommandLine& line, Output& output) {
  RNICD_ASSIGN_OR_RETURN(const std::vector<v1::SessionInfo> sessions, Admin(AdminSocketDir(line)).Sessions());
  output.Result(SessionsText(sessions), SessionsJson(sessions));
  return absl::OkStatus();
}

absl::Status RunRegions(const CommandLine& line, Output& output) {
  RNICD_ASSIGN_OR_RETURN(const std::vector<v1::RegionInfo> regions, Admin(AdminSocketDir(line)).Regions());
  output.Result(RegionsText(regions), RegionsJson(regions));
  return absl::OkStatus();
}

absl::Status RunListeners(const CommandLine& line, Output& output) {
  RNICD_ASSIGN_OR_RETURN(const std::vector<v1::ListenerInfo> listeners, Admin(AdminSocketDir(line)).Listeners());
  output.Result(ListenersText(listeners), ListenersJson(listeners));
  return absl::OkStatus();
}

absl::Status RunConnections(const CommandLine& line, Output& output) {
  RNICD_ASSIGN_OR_RETURN(const std::vector<v1::ConnectionInfo> connections, Admin(AdminSocketDir(line)).Connections());
  output.Result(ConnectionsText(connections), ConnectionsJson(connections));
  return absl::OkStatus();
}

absl::Status RunTenants(const CommandLine& line, Output& output) {
  RNICD_ASSIGN_OR_RETURN(const std::vector<v1::TenantInfo> tenants, Admin(AdminSocketDir(line)).Tenants());
  output.Result(TenantsText(tenants), TenantsJson(tenants));
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
        "grant. A bar shows how much of a limit is used; no bar means no limit.\n",
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
