#include "daemon/app/host/hidden_paths_linux.h"

#include <filesystem>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/files/folder_linux.h"
#include "base/status.h"
#include "daemon/app/config/system_config_linux.h"

namespace rnicd::app {
namespace {

absl::Status CheckFolder(const char* flag, const std::string& path, const std::string& folder,
                         const std::string& workloads) {
  RNICD_ASSIGN_OR_RETURN(const bool visible, IsPartOf(workloads, folder));
  return visible ? absl::FailedPreconditionError(absl::StrCat("--", flag, "=", path, ": must not be --socket_dir=",
                                                              workloads, " or in it, because containers see that"))
                 : absl::OkStatus();
}

// The folder that has the name, and that of the file behind a link.
absl::Status CheckName(const char* flag, const std::string& path, const std::string& workloads) {
  if (path.empty()) {
    return absl::OkStatus();
  }
  std::error_code error;
  const std::filesystem::path target = std::filesystem::canonical(path, error);
  if (!error) {
    RNICD_RETURN_IF_ERROR(CheckFolder(flag, path, target.parent_path().string(), workloads));
  }
  return CheckFolder(flag, path, std::filesystem::path(path).parent_path().string(), workloads);
}

}  // namespace

absl::Status CheckHiddenFromContainers(const Config& config) {
  const std::string& workloads = config.system->socket_dir;
  const std::string& operators = config.system->admin_socket_dir;
  RNICD_RETURN_IF_ERROR(CheckFolder("admin_socket_dir", operators, operators, workloads));
  RNICD_RETURN_IF_ERROR(CheckName("admin_socket_dir", operators, workloads));
  RNICD_RETURN_IF_ERROR(CheckFolder("door_dir", config.system->door_dir, config.system->door_dir, workloads));
  RNICD_RETURN_IF_ERROR(CheckName("door_dir", config.system->door_dir, workloads));
  RNICD_RETURN_IF_ERROR(CheckName("soft_network", config.system->soft_network, workloads));
  RNICD_RETURN_IF_ERROR(CheckName("policy_file", config.policy_file, workloads));
  return CheckName("audit_log", config.audit_log, workloads);
}

}  // namespace rnicd::app
