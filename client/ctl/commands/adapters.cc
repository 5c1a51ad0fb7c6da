#include "client/ctl/commands/adapters.h"

#include "base/status.h"
#include "client/cpp/channel/channel.h"
#include "client/cpp/channel/daemon_address.h"
#include "client/cpp/channel/methods.h"
#include "client/ctl/commands/command_rows.h"
#include "client/ctl/line/common_options.h"
#include "client/ctl/output/views.h"

namespace rnicd::ctl {
namespace {

absl::Status RunAdapters(const CommandLine& line, Output& output) {
  RNICD_ASSIGN_OR_RETURN(const v1::ListAdaptersResponse adapters, ListAdapters(SocketDir(line)));
  output.Result(AdaptersText(adapters), AdaptersJson(adapters));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<v1::ListAdaptersResponse> ListAdapters(const std::string& socket_dir) {
  constexpr std::chrono::seconds kTimeout{30};
  RNICD_ASSIGN_OR_RETURN(const auto channel, ConnectAsWorkload(socket_dir, kTimeout));
  return client::Call(*channel, kListAdapters, {}, kTimeout);
}

constinit const CommandSpec kAdaptersCommand = {
    .name = "adapters",
    .summary = "list the node's RDMA adapters and their limits",
    .description = "Uses the workload socket and needs no rights. With --json every limit of the adapter is shown.\n",
    .examples = "rnicctl adapters\nrnicctl adapters --json\n",
    .run = RunAdapters,
};

}  // namespace rnicd::ctl
