#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "base/files/paths.h"
#include "daemon/app/config/system_config_linux.h"
#include "daemon/app/config/system_flags.h"
#include "daemon/app/config/verbs_flags_linux.h"

ABSL_FLAG(std::string, socket_dir, "/run/rnicd",
          "directory of the sockets for workloads (rpc.sock, fd.sock); mount this directory into containers");
ABSL_FLAG(std::string, admin_socket_dir, "",
          "directory of the operator's socket (admin.sock, mode 0600); empty: --socket_dir with \"-admin\" appended");
ABSL_FLAG(std::string, door_dir, "",
          "directory of the doors of grants, each a directory with an rpc.sock and an fd.sock of its own; mount one of "
          "these into its container; empty: --socket_dir with \"-doors\" appended");
ABSL_FLAG(std::string, handover_dir, "",
          "directory of the socket by which a newer daemon takes over from this one, and this one from an older one "
          "that runs; of the daemon alone; empty: --socket_dir with \"-handover\" appended");
ABSL_FLAG(int64_t, handover_deadline_ms, 86'400'000,
          "the longest that a daemon which was taken over from goes on for its sessions, in milliseconds");
ABSL_FLAG(std::string, socket_mode, "0666", "mode of rpc.sock and fd.sock, octal");
ABSL_FLAG(std::string, soft_network, "",
          "soft provider: folder, made where there is none, by which the soft cards of this machine's daemons of this "
          "user reach each other; each daemon needs its own --soft_addresses; empty: none");
ABSL_FLAG(
    std::string, system_call_filter, "enforce",
    "what happens at a system call that the daemon has no use for: enforce (the kernel ends the daemon), log (the "
    "kernel logs it) or off");
ABSL_FLAG(bool, restrict_paths, true,
          "let the kernel (Landlock) keep the daemon to the files that it needs; not for drivers of cards outside of "
          "/usr, /lib and /opt");

namespace rnicd::app {
namespace {

constexpr int64_t kThirtyDaysMs = int64_t{30} * 24 * 3'600'000;

// The folders themselves are compared when they exist (hidden_paths_linux.h).
std::string HiddenPath(const absl::Flag<std::string>& flag, const char* suffix, const SystemConfig& system,
                       FlagReader& reader) {
  std::string path = reader.AbsolutePath(flag);
  if (path.empty()) {
    path = PathBeside(system.socket_dir, suffix);
  }
  if (NamesPartOf(system.socket_dir, path)) {
    reader.AddError(std::string(flag.Name()), "must not be --socket_dir or in it, because containers see that");
  }
  return path;
}

void ReadDirectories(SystemConfig& system, FlagReader& reader) {
  system.socket_dir = reader.AbsolutePath(FLAGS_socket_dir);
  if (system.socket_dir.empty()) {
    reader.AddError("socket_dir", "must be an absolute path");
  }
  system.admin_socket_dir = HiddenPath(FLAGS_admin_socket_dir, "-admin", system, reader);
  system.door_dir = HiddenPath(FLAGS_door_dir, "-doors", system, reader);
  system.handover_dir = HiddenPath(FLAGS_handover_dir, "-handover", system, reader);
  system.handover_deadline = reader.Milliseconds(FLAGS_handover_deadline_ms, 1, kThirtyDaysMs);
  system.socket_mode = reader.Mode(FLAGS_socket_mode);
  system.soft_network = reader.AbsolutePath(FLAGS_soft_network);
  if (!system.soft_network.empty() && NamesPartOf(system.socket_dir, system.soft_network)) {
    reader.AddError("soft_network", "must not be --socket_dir or in it, because containers see that");
  }
}

// The folder and not the file: a policy is replaced by renaming another one, which Kubernetes does behind a link.
void AddPolicyPaths(const std::string& policy_file, std::vector<std::string>& paths) {
  const std::filesystem::path file(policy_file);
  paths.push_back(file.parent_path().string());
  std::error_code error;
  const std::filesystem::path target = std::filesystem::canonical(file, error);
  if (!error && target.parent_path() != file.parent_path()) {
    paths.push_back(target.parent_path().string());
  }
}

sandbox::PathRules PathsOf(const Config& config, const SystemConfig& system) {
  sandbox::PathRules paths{.read = {},
                           .write = {system.socket_dir, system.admin_socket_dir, system.door_dir, system.handover_dir},
                           .devices = {}};
  if (!config.policy_file.empty()) {
    AddPolicyPaths(config.policy_file, paths.read);
  }
  if (!system.soft_network.empty()) {
    paths.write.push_back(system.soft_network);
  }
  if (!config.audit_log.empty()) {
    paths.write.push_back(std::filesystem::path(config.audit_log).parent_path().string());
  }
  if (config.provider == "verbs") {
    paths.devices.emplace_back("/dev/infiniband");
  }
  return paths;
}

void ReadSandbox(const Config& config, SystemConfig& system, FlagReader& reader) {
  const std::string filter = absl::GetFlag(FLAGS_system_call_filter);
  const std::optional<sandbox::SystemCallFilter> known = sandbox::SystemCallFilterFromName(filter);
  if (!known.has_value()) {
    reader.AddError("system_call_filter", absl::StrCat("must be enforce, log or off, not \"", filter, "\""));
  }
  system.sandbox.filter = known.value_or(sandbox::SystemCallFilter::kEnforce);
  // Cards count pinned memory against the limit of the daemon's process; only this capability lifts it.
  system.sandbox.keep_ipc_lock = config.provider == "verbs";
  system.sandbox.looks_for_cards = config.provider == "verbs";
  if (absl::GetFlag(FLAGS_restrict_paths)) {
    system.sandbox.paths = PathsOf(config, system);
  }
}

}  // namespace

void ReadSystemFlags(Config& config, FlagReader& reader) {
  auto system = std::make_shared<SystemConfig>();
  ReadDirectories(*system, reader);
  ReadSandbox(config, *system, reader);
  system->verbs = ReadVerbsFlags(reader);
  config.system = std::move(system);
}

}  // namespace rnicd::app
