#include "base/status.h"
#include "client/cpp/channel.h"
#include "client/ctl/command_rows.h"
#include "client/ctl/common_options.h"
#include "client/ctl/views.h"
#include "rnicd/v1/adapter_service.grpc.pb.h"

namespace rnicd::ctl {
namespace {

// Opens no session: ListAdapters needs none, and works on a node whose sessions are all in use.
absl::Status RunAdapters(const CommandLine& line, Output& output) {
  const auto stub = v1::AdapterService::NewStub(MakeUnixChannel(SocketDir(line) + "/rpc.sock"));
  RNICD_ASSIGN_OR_RETURN(const v1::ListAdaptersResponse adapters,
                         CallUnary(*stub, &v1::AdapterService::Stub::ListAdapters, {}, std::chrono::seconds(30)));
  output.Result(AdaptersText(adapters), AdaptersJson(adapters));
  return absl::OkStatus();
}

}  // namespace

constinit const CommandSpec kAdaptersCommand = {
    .name = "adapters",
    .summary = "list the node's RDMA adapters and their limits",
    .description = "Uses the workload socket and needs no rights. With --json every limit of the adapter is shown.\n",
    .examples = "rnicctl adapters\nrnicctl adapters --json\n",
    .run = RunAdapters,
};

}  // namespace rnicd::ctl
