#include "client/kubernetes/config.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/files/paths.h"
#include "client/admin/address_ranges.h"
#include "client/admin/amounts.h"

ABSL_FLAG(std::string, admin_socket_dir, "/run/rnicd-admin", "directory of the daemon's admin.sock");
ABSL_FLAG(std::string, door_dir, "/run/rnicd-doors", "directory of the doors on the node");
ABSL_FLAG(std::string, container_socket_dir, "/run/rnicd", "path of a container's door inside the container");
ABSL_FLAG(std::string, kubelet_dir, "/var/lib/kubelet/device-plugins", "directory of kubelet.sock");
ABSL_FLAG(std::string, pod_resources_socket, "/var/lib/kubelet/pod-resources/kubelet.sock",
          "the kubelet's pod resources socket, for the holders of devices; empty: holders are unknown, and grants are "
          "revoked only when another pod gets their devices");
ABSL_FLAG(
    std::string, own_pod, "",
    "NAMESPACE/NAME of the plugin's own pod: a kubelet that does not list it does not know its other pods either, and "
    "its response is ignored");
ABSL_FLAG(std::string, state_dir, "/var/lib/rnicd-device-plugin",
          "directory of grants.json; must outlive the pod and the node's restarts");
ABSL_FLAG(std::string, resources, "rnicd.io/memory-64mi=64MiB",
          "resources of the node: NAME=UNIT or NAME=UNIT:COUNT, separated by commas; without a count as many units as "
          "fit into an equal share of the pool");
ABSL_FLAG(
    int64_t, pool_bytes, 0,
    "total bytes of all devices; 0: the daemon's limit of pinned bytes or memory, or half of the machine's memory "
    "if it has none");
ABSL_FLAG(
    std::string, grant_limits,
    "regions=65536,memory_objects=1024,fast_register_pages=4194304,queue_pairs=256,queue_entries=262144,"
    "completion_queues=256,cq_entries=262144,windows=4096,logical_mappings=4096,adapters=64,protection_domains=256,"
    "pending_requests=1024,posted_pages=4194304,logical_pages=16777216,heap_bytes=512MiB,sessions=64,"
    "listeners=64,connectors=1024",
    "limits of each container other than bytes of its memory, by the names of policy.proto");
ABSL_FLAG(std::string, grant_listen, "",
          "where each container may listen: prefixes, each with ports or not: 10.98.0.1,10.98.0.0/16@7000-7010");
ABSL_FLAG(std::string, grant_connect, "",
          "what each container may reach besides itself, likewise; queue pairs without regard to ports");
ABSL_FLAG(std::string, grant_accept, "", "prefixes of peers whose requests its listeners get");
ABSL_FLAG(int64_t, registered_times, 4, "how many times over a container may register its bytes; 1 to 1024");
ABSL_FLAG(int64_t, revoke_grace_ms, 60000,
          "time after which a grant is revoked when its pod is gone; 1000 to 86400000");
ABSL_FLAG(int64_t, reconcile_interval_ms, 10000,
          "interval of requests to the kubelet for the holders of devices; 100 to 240000");
ABSL_FLAG(
    int64_t, daemon_timeout_ms, 5000,
    "how long the daemon may be away or hang before devices turn unhealthy and Allocate fails; a call to a daemon that "
    "hangs takes at least 1000; 0 to 60000");
ABSL_FLAG(std::string, node_name, "", "this node's name in the cluster; needed to ask the API server");
ABSL_FLAG(
    std::string, kubernetes_server, "",
    "https://HOST:PORT of the API server, for UIDs and labels of pods; empty: from the environment, off: not used");
ABSL_FLAG(std::string, kubernetes_token_file, rnicd::kubernetes::ClusterOptions().token_file,
          "token for the API server");
ABSL_FLAG(std::string, kubernetes_ca_file, rnicd::kubernetes::ClusterOptions().ca_file,
          "CA certificates for the API server");
ABSL_FLAG(bool, probe, false, "check whether the running plugin serves; exit status 0 or 1");
ABSL_FLAG(std::string, log_level, "info", "debug, info, warning or error");
ABSL_FLAG(std::string, log_format, "text", "text or json; lines go to stderr");

namespace rnicd::kubernetes {
namespace {

class Reader {
 public:
  explicit Reader(std::vector<std::string>& errors) : errors_(errors) {}

  template <typename Value>
  void AddError(const absl::Flag<Value>& flag, const std::string& what) {
    errors_.push_back(absl::StrCat("--", flag.Name(), ": ", what));
  }

  uint64_t Number(const absl::Flag<int64_t>& flag, int64_t lowest, int64_t highest) {
    const int64_t value = absl::GetFlag(flag);
    if (value < lowest || value > highest) {
      AddError(flag, absl::StrCat("must be ", lowest, " to ", highest, ", not ", value));
    }
    return static_cast<uint64_t>(value);
  }

  std::chrono::milliseconds Milliseconds(const absl::Flag<int64_t>& flag, int64_t lowest, int64_t highest) {
    return std::chrono::milliseconds(Number(flag, lowest, highest));
  }

  std::string Path(const absl::Flag<std::string>& flag, bool may_be_empty = false) {
    const std::string path = absl::GetFlag(flag);
    if (path.empty() ? !may_be_empty : !IsAbsolutePath(path)) {
      AddError(flag, absl::StrCat("must be an absolute path, not \"", absl::CHexEscape(path), "\""));
    }
    return CleanPath(path);
  }

 private:
  std::vector<std::string>& errors_;
};

log::Options LogOptions(Reader& reader) {
  log::Options options;
  const std::optional<log::Level> level = log::LevelFromName(absl::GetFlag(FLAGS_log_level));
  if (!level.has_value()) {
    reader.AddError(FLAGS_log_level, "must be debug, info, warning or error");
  }
  options.level = level.value_or(log::Level::kInfo);
  const std::string format = absl::GetFlag(FLAGS_log_format);
  if (format != "text" && format != "json") {
    reader.AddError(FLAGS_log_format, "must be text or json");
  }
  options.json = format == "json";
  return options;
}

void ReadConnections(Reader& reader, v1::ConnectionPolicy& connections) {
  const std::pair<std::string_view, const absl::Flag<std::string>&> lists[] = {
      {"listen", FLAGS_grant_listen}, {"connect", FLAGS_grant_connect}, {"accept", FLAGS_grant_accept}};
  for (const auto& [name, flag] : lists) {
    if (const absl::Status status = AddRanges(name, absl::GetFlag(flag), connections); !status.ok()) {
      reader.AddError(flag, std::string(status.message()));
    }
  }
}

GrantOptions GrantOptionsFrom(Reader& reader) {
  GrantOptions options;
  const absl::Status limits = LimitSetter(options.limits).SetList(absl::GetFlag(FLAGS_grant_limits));
  if (!limits.ok()) {
    reader.AddError(FLAGS_grant_limits, std::string(limits.message()));
  }
  if (options.limits.pinned_bytes() + options.limits.memory_bytes() + options.limits.registered_bytes() != 0) {
    reader.AddError(FLAGS_grant_limits,
                    "must not name bytes of memory: they follow from the devices and --registered_times");
  }
  ReadConnections(reader, options.connections);
  options.registered_times = reader.Number(FLAGS_registered_times, 1, 1024);
  options.grace = reader.Milliseconds(FLAGS_revoke_grace_ms, 1000, 86400000);
  return options;
}

ClusterOptions ClusterOptionsFrom(Reader& reader) {
  ClusterOptions options;
  const std::string server = absl::GetFlag(FLAGS_kubernetes_server);
  options.node_name = absl::GetFlag(FLAGS_node_name);
  options.token_file = reader.Path(FLAGS_kubernetes_token_file);
  options.ca_file = reader.Path(FLAGS_kubernetes_ca_file);
  if (server == "off") {
    return options;
  }
  // The plugin asks the API server only when it has a node name; the environment variables exist in every pod.
  options.server = !server.empty() ? server : options.node_name.empty() ? "" : ClusterServerFromEnvironment();
  if (!options.server.empty() && !options.server.starts_with("https://")) {
    reader.AddError(FLAGS_kubernetes_server, "must begin with https://, or be off");
  }
  constexpr std::string_view kNameCharacters = "abcdefghijklmnopqrstuvwxyz0123456789.-";
  const bool strange = options.node_name.find_first_not_of(kNameCharacters) != std::string::npos;
  if (strange || (!options.server.empty() && options.node_name.empty())) {
    reader.AddError(FLAGS_node_name, "must be the node's name in the cluster: a-z, 0-9, \"-\" and \".\"");
  }
  return options;
}

}  // namespace

std::string ClusterServerFromEnvironment() {
  const char* const host = std::getenv("KUBERNETES_SERVICE_HOST");
  const char* const port = std::getenv("KUBERNETES_SERVICE_PORT");
  if (host == nullptr || *host == '\0' || port == nullptr || *port == '\0') {
    return "";
  }
  const bool is_ipv6 = std::string_view(host).find(':') != std::string_view::npos;
  return is_ipv6 ? absl::StrCat("https://[", host, "]:", port) : absl::StrCat("https://", host, ":", port);
}

Config ConfigFromFlags(std::vector<std::string>& errors) {
  Reader reader(errors);
  Config config;
  config.admin_socket_dir = reader.Path(FLAGS_admin_socket_dir);
  config.door_dir = reader.Path(FLAGS_door_dir);
  config.container_socket_dir = reader.Path(FLAGS_container_socket_dir);
  config.kubelet.folder = reader.Path(FLAGS_kubelet_dir);
  config.pod_resources_socket = reader.Path(FLAGS_pod_resources_socket, /*may_be_empty=*/true);
  config.own_pod = absl::GetFlag(FLAGS_own_pod);
  if (!config.own_pod.empty() && std::count(config.own_pod.begin(), config.own_pod.end(), '/') != 1) {
    reader.AddError(FLAGS_own_pod, "must be NAMESPACE/NAME");
  }
  config.state_dir = reader.Path(FLAGS_state_dir);
  absl::StatusOr<std::vector<ResourceSpec>> resources = ParseResources(absl::GetFlag(FLAGS_resources));
  if (resources.ok()) {
    config.resources = *std::move(resources);
  } else {
    reader.AddError(FLAGS_resources, std::string(resources.status().message()));
  }
  config.grants = GrantOptionsFrom(reader);
  for (const ResourceSpec& resource : config.resources) {
    config.grants.resources.push_back(resource.name);
  }
  config.pool_bytes = reader.Number(FLAGS_pool_bytes, 0, INT64_MAX);
  config.reconcile_interval = reader.Milliseconds(FLAGS_reconcile_interval_ms, 100, 240000);
  config.daemon_timeout = reader.Milliseconds(FLAGS_daemon_timeout_ms, 0, 60000);
  config.cluster = ClusterOptionsFrom(reader);
  config.probe = absl::GetFlag(FLAGS_probe);
  config.log = LogOptions(reader);
  return config;
}

}  // namespace rnicd::kubernetes
