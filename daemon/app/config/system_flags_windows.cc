#include <string>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/app/config/networkdirect_flags_windows.h"
#include "daemon/app/config/system_config_windows.h"
#include "daemon/app/config/system_flags.h"

ABSL_FLAG(std::string, pipe, "rnicd", "name of the pipe for workloads, without \\\\.\\pipe\\");
ABSL_FLAG(
    std::string, admin_pipe, "",
    "name of the operators' pipe, which only SYSTEM, administrators and the daemon's user may open; empty: --pipe "
    "with \"-admin\" appended");
ABSL_FLAG(bool, event_log, true,
          "warnings and errors also go to the system's event log, as source rnicd of the log Application");
namespace rnicd::app {
namespace {

// The system's limit is 256 for the whole name.
constexpr size_t kNameBytesMax = 200;

std::string PipeNamed(const absl::Flag<std::string>& flag, const std::string& name, FlagReader& reader) {
  if (name.empty() || name.size() > kNameBytesMax || name.find('\\') != std::string::npos) {
    reader.AddError(std::string(flag.Name()), absl::StrCat("must be 1 to ", kNameBytesMax, " bytes without \\"));
  }
  return absl::StrCat("\\\\.\\pipe\\", name);
}

pipes::PipeNames ReadPipes(FlagReader& reader) {
  const std::string workloads = absl::GetFlag(FLAGS_pipe);
  std::string operators = absl::GetFlag(FLAGS_admin_pipe);
  if (operators.empty()) {
    operators = workloads + "-admin";
  }
  if (absl::EqualsIgnoreCase(workloads, operators)) {
    reader.AddError("admin_pipe", "must not be --pipe, which every user may open");
  }
  return {.workloads = PipeNamed(FLAGS_pipe, workloads, reader),
          .operators = PipeNamed(FLAGS_admin_pipe, operators, reader)};
}

}  // namespace

void ReadSystemFlags(Config& config, FlagReader& reader) {
  auto system = std::make_shared<SystemConfig>();
  system->pipes = ReadPipes(reader);
  system->network_direct = ReadNetworkDirectFlags(reader);
  config.system = std::move(system);
  config.log.event_log = absl::GetFlag(FLAGS_event_log);
}

}  // namespace rnicd::app
