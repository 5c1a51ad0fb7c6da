#include "client/kubernetes/plugin.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/folder_linux.h"
#include "base/status.h"
#include "base/this_process.h"
#include "client/cpp/channel.h"
#include "client/cpp/transport_failure.h"
#include "client/cpp/unix_channel.h"
#include "client/kubernetes/cdi_spec.h"
#include "client/kubernetes/grpc_lines.h"
#include "client/kubernetes/inventory.h"
#include "client/kubernetes/pod_list.h"
#include "kubelet/v1beta1/device_plugin.grpc.pb.h"

namespace rnicd::kubernetes {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using std::chrono::system_clock;

constexpr milliseconds kPollInterval(1'000);
constexpr milliseconds kRetryPause(100);
// A daemon that is not away needs less than this, also on a loaded node.
constexpr milliseconds kShortestCallTimeout(1'000);
// Usual time from Allocate until the kubelet names the holder.
constexpr milliseconds kHolderDelay(2'000);
constexpr milliseconds kProbeTimeout(3'000);

// Retries `call` while the daemon is away, until the timeout passes.
template <typename Call>
auto WithTimeout(milliseconds timeout, const Call& call) -> decltype(call()) {
  const auto end = steady_clock::now() + timeout;
  for (;;) {
    auto outcome = call();
    const absl::Status status = [&] {
      if constexpr (std::is_same_v<decltype(outcome), absl::Status>) {
        return outcome;
      } else {
        return outcome.status();
      }
    }();
    if (!IsTransportFailure(status) || steady_clock::now() + kRetryPause > end) {
      return outcome;
    }
    std::this_thread::sleep_for(kRetryPause);
  }
}

// Containers could connect as operators, or read the secrets of other containers' grants.
absl::Status CheckHiddenFromContainers(const Config& config) {
  for (const std::string& folder : {config.admin_socket_dir, config.state_dir}) {
    RNICD_ASSIGN_OR_RETURN(const bool visible, IsPartOf(config.socket_dir, folder));
    if (visible) {
      return absl::FailedPreconditionError(folder + ": must not be --socket_dir or in it, because containers see that");
    }
  }
  return absl::OkStatus();
}

}  // namespace

Plugin::Plugin(Config config, std::function<void()> on_failure)
    : config_(std::move(config)),
      on_failure_(std::move(on_failure)),
      logger_(config_.log),
      random_(std::make_unique<KernelRandom>()),
      daemon_(config_.admin_socket_dir, std::max(config_.daemon_timeout, kShortestCallTimeout)),
      file_(config_.state_dir),
      keeper_(daemon_, file_, *random_, logger_,
              {.resources = config_.grants.resources,
               .limits = config_.grants.limits,
               .registered_times = config_.grants.registered_times,
               .grace = config_.grants.grace,
               .offered_bytes = [this](const GrantRecord& record) { return OfferedBytes(record); }}),
      watch_(daemon_, clock_, logger_,
             {.resources = config_.resources,
              .pool_bytes = config_.pool_bytes,
              .machine_bytes = MachineMemoryBytes(),
              .timeout = config_.daemon_timeout}),
      pod_resources_(config_.pod_resources_socket, config_.own_pod),
      cluster_(config_.cluster) {
  RouteGrpcLines();
}

Plugin::~Plugin() { Stop(); }

absl::Status Plugin::Start() {
  RNICD_RETURN_IF_ERROR(CheckHiddenFromContainers(config_));
  if (const absl::Status loaded = keeper_.Load(); absl::IsDataLoss(loaded)) {
    logger_.Error("grants that the daemon does not know are lost", {{"error", std::string(loaded.message())}});
  } else if (!loaded.ok()) {
    return loaded;
  }
  if (!config_.cdi_dir.empty()) {
    RNICD_RETURN_IF_ERROR(WriteCdiSpec(
        config_.cdi_dir, {.container_path = config_.container_socket_dir, .host_path = config_.socket_dir}));
  }
  std::vector<OfferedResource> offered;
  for (const auto& [resource, board] : watch_.boards()) {
    offered.push_back({.name = resource, .board = board.get()});
  }
  link_ = std::make_unique<KubeletLink>(config_.kubelet, std::move(offered), *this, logger_);
  thread_ = std::thread([this] { Run(); });
  return absl::OkStatus();
}

void Plugin::Stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  wake_.NotifyAll();
  watch_.Close();
  if (thread_.joinable()) {
    thread_.join();
  }
  if (link_ != nullptr) {
    link_->Stop();
  }
}

bool Plugin::WaitUntilStop(milliseconds longest) {
  const auto end = steady_clock::now() + longest;
  MutexLock lock(mutex_);
  while (!stopping_ && wake_.WaitUntil(mutex_, end)) {
  }
  return stopping_;
}

// The link is started once the devices are known: a kubelet that receives an empty list would forget the devices of the
// previous plugin process.
void Plugin::Run() {
  bool linked = false;
  auto next_reconciliation = steady_clock::now();
  do {
    PollDaemon();
    if (!linked && !watch_.plan_error().ok()) {
      Fail(watch_.plan_error());
      return;
    }
    if (!linked && watch_.known()) {
      linked = true;
      LogOnChange("the kubelet's folder", link_->Start(), link_trouble_);
    }
    const auto now = steady_clock::now();
    if (TakeReconcileSoon()) {
      next_reconciliation = std::min(next_reconciliation, now + kHolderDelay);
    }
    if (linked && (now >= next_reconciliation || report_is_due_)) {
      Reconcile();
      next_reconciliation = steady_clock::now() + config_.reconcile_interval;
    }
  } while (!WaitUntilStop(std::min(kPollInterval, config_.reconcile_interval)));
}

void Plugin::Fail(const absl::Status& failure) {
  {
    MutexLock lock(mutex_);
    failure_ = failure;
  }
  on_failure_();
}

absl::Status Plugin::failure() const {
  MutexLock lock(mutex_);
  return failure_;
}

bool Plugin::TakeReconcileSoon() {
  MutexLock lock(mutex_);
  renewal_is_due_ = std::exchange(renew_soon_, false) || renewal_is_due_;
  return std::exchange(reconcile_soon_, false);
}

void Plugin::PollDaemon() {
  const DaemonWatch::PollResult seen = watch_.Poll();
  renewal_is_due_ = renewal_is_due_ || seen.is_new;
  report_is_due_ = report_is_due_ || seen.is_new;
  if (seen.reachable && renewal_is_due_) {
    const absl::Status renewed = keeper_.Renew(system_clock::now());
    LogOnChange("renewing grants", renewed, renew_trouble_);
    renewal_is_due_ = !renewed.ok();
  }
}

void Plugin::Reconcile() {
  Observation observation;
  bool complete = false;
  const bool listed = ObserveKubelet(observation, complete);
  ObserveCluster(observation);
  const NodeView view(observation);
  if (complete) {
    const absl::Status revoked = keeper_.Reconcile(view, system_clock::now());
    LogOnChange("revoking grants", revoked, revoke_trouble_);
    // A daemon that hangs must not also delay the next look at its health.
    if (IsTransportFailure(revoked)) {
      return;
    }
  }
  LogOnChange("comparing the pool with what pods hold", CheckPool(), pool_trouble_);
  ReportPods(view.Holders(keeper_.records()), listed);
}

// The checkpoint is read after the response, so that it names the pods of every holder.
bool Plugin::ObserveKubelet(Observation& observation, bool& complete) {
  if (config_.pod_resources_socket.empty()) {
    return true;
  }
  const std::vector<std::string> resources = ResourcesInUse();
  absl::StatusOr<PodResourcesList> listed = pod_resources_.List(resources);
  LogOnChange("asking the kubelet who holds devices", listed.status(), holders_trouble_);
  if (!listed.ok()) {
    return false;
  }
  observation.listed_pods = std::move(listed->pods);
  observation.holders = std::move(listed->holders);
  absl::StatusOr<std::vector<CheckpointEntry>> checkpoint = ReadKubeletCheckpoint(config_.kubelet.folder, resources);
  LogOnChange("reading the kubelet's checkpoint", checkpoint.status(), checkpoint_trouble_);
  complete = checkpoint.ok();
  if (complete) {
    observation.checkpoint = *std::move(checkpoint);
  }
  return true;
}

void Plugin::ObserveCluster(Observation& observation) {
  if (config_.cluster.server.empty()) {
    return;
  }
  absl::StatusOr<std::vector<ClusterPod>> pods = cluster_.Pods();
  LogOnChange("asking the API server for pods", pods.status(), cluster_trouble_);
  observation.cluster_is_away = !pods.ok();
  if (pods.ok()) {
    cluster_pods_ = *std::move(pods);
    observation.cluster = cluster_pods_;
  }
}

// While the API server does not respond the last known pods are reported.
void Plugin::ReportPods(std::span<const Holder> holders, bool listed) {
  // A plugin that is not registered, or cannot ask the kubelet, sends nothing: the alert KubeletRegistrationLost
  // detects that silence. The first report to a new daemon is an exception, because policy rules for namespaces need
  // it.
  const bool regular = listed && link_->registered();
  const bool first = report_is_due_ && (listed || !cluster_pods_.empty() || !holders.empty());
  if (!regular && !first) {
    return;
  }
  const absl::Status reported = daemon_.SetPods(PodList(cluster_pods_, holders));
  LogOnChange("telling the daemon of pods", reported, pods_trouble_);
  report_is_due_ = IsTransportFailure(reported) && report_is_due_;
}

// Includes resources that are no longer offered but that pods still hold.
std::vector<std::string> Plugin::ResourcesInUse() const {
  std::set<std::string> names(config_.grants.resources.begin(), config_.grants.resources.end());
  for (const GrantRecord& grant : keeper_.records()) {
    names.insert(grant.resource);
  }
  return {names.begin(), names.end()};
}

std::optional<uint64_t> Plugin::OfferedBytes(const GrantRecord& record) const {
  const auto spec = std::find_if(config_.resources.begin(), config_.resources.end(),
                                 [&](const ResourceSpec& one) { return one.name == record.resource; });
  const auto board = watch_.boards().find(record.resource);
  if (spec == config_.resources.end() || board == watch_.boards().end()) {
    return std::nullopt;
  }
  const DeviceBoard::View view = board->second->Get();
  return view.version == 0 ? std::nullopt
                           : std::optional(CountOffered(view.devices, record.device_ids) * spec->unit_bytes);
}

absl::Status Plugin::CheckPool() const {
  std::map<std::string, std::vector<std::string>> held;
  for (const GrantRecord& grant : keeper_.records()) {
    if (!grant.suspended) {
      std::vector<std::string>& ids = held[grant.resource];
      ids.insert(ids.end(), grant.device_ids.begin(), grant.device_ids.end());
    }
  }
  std::string text;
  for (const auto& [resource, ids] : held) {
    const auto board = watch_.boards().find(resource);
    const size_t offered = board == watch_.boards().end() ? 0 : CountOffered(board->second->Get().devices, ids);
    if (offered < ids.size()) {
      absl::StrAppend(&text, text.empty() ? "" : "; ", "pods hold ", ids.size() - offered, " units of ", resource,
                      " that this node no longer offers");
    }
  }
  return text.empty() ? absl::OkStatus() : absl::FailedPreconditionError(text);
}

absl::StatusOr<ContainerAllocation> Plugin::Allocate(const std::string& resource,
                                                     const std::vector<std::string>& device_ids) {
  const auto spec = std::find_if(config_.resources.begin(), config_.resources.end(),
                                 [&](const ResourceSpec& one) { return one.name == resource; });
  if (spec == config_.resources.end()) {
    return absl::InvalidArgumentError("this node does not offer " + resource);
  }
  const absl::StatusOr<std::string> secret =
      WithTimeout(config_.daemon_timeout, [&] { return keeper_.Allocate(*spec, device_ids, system_clock::now()); });
  {
    MutexLock lock(mutex_);
    reconcile_soon_ = true;
    renew_soon_ = renew_soon_ || IsTransportFailure(secret.status());
  }
  RNICD_RETURN_IF_ERROR(secret.status());
  return AllocationFor(*secret);
}

ContainerAllocation Plugin::AllocationFor(const std::string& secret) const {
  ContainerAllocation allocation{.environment = {{"RNICD_GRANT", secret}}};
  if (config_.cdi_dir.empty()) {
    allocation.environment["RNICD_SOCKET_DIR"] = config_.container_socket_dir;
    allocation.mounts.push_back({.container_path = config_.container_socket_dir, .host_path = config_.socket_dir});
  } else {
    // Its specification has the mount and the variable.
    allocation.cdi_devices.emplace_back(kCdiDevice);
  }
  return allocation;
}

// Allocate names neither pod nor container; before the start the checkpoint does. The kubelet writes environments to
// its log after this call, so a secret that is read there is bound already.
absl::Status Plugin::Prepare(const std::string& resource, const std::vector<std::string>& device_ids) {
  const std::vector<CheckpointEntry> checkpoint =
      ReadKubeletCheckpoint(config_.kubelet.folder, ResourcesInUse()).value_or(std::vector<CheckpointEntry>());
  if (const std::string other = OtherResource(checkpoint, resource, device_ids); !other.empty()) {
    // The kubelet would choose one of the two grants at random, and log both secrets.
    return absl::FailedPreconditionError(
        absl::StrCat("the container requests ", resource, " and ", other, ", but can have one kind of unit only"));
  }
  const std::string pod_uid = PodUidOf(checkpoint, resource, device_ids);
  return WithTimeout(config_.daemon_timeout,
                     [&] { return keeper_.Prepare(resource, device_ids, pod_uid, system_clock::now()); });
}

void Plugin::KubeletConnected() { keeper_.KubeletConnected(); }

std::set<std::string> Plugin::DevicesToAvoid(const std::string& resource) { return keeper_.DevicesToAvoid(resource); }

void Plugin::AwaitTurn() {
  keeper_.AwaitTurn();
  MutexLock lock(mutex_);
}

void Plugin::LogOnChange(const char* what, const absl::Status& status, std::string& last) const {
  const std::string text(status.message());
  if (text == last) {
    return;
  }
  last = text;
  if (status.ok()) {
    logger_.Info("works again", {{"what", what}});
  } else {
    logger_.Warning("failed", {{"what", what}, {"error", text}});
  }
}

absl::Status ProbePlugin(const Config& config) {
  const auto end = steady_clock::now() + kProbeTimeout;
  for (const ResourceSpec& resource : config.resources) {
    const std::string path = SocketPath(config.kubelet, resource.name);
    const std::unique_ptr<v1beta1::DevicePlugin::Stub> stub = v1beta1::DevicePlugin::NewStub(MakeUnixChannel(path));
    const auto left = std::chrono::ceil<milliseconds>(end - steady_clock::now());
    const absl::Status status = CallUnary(*stub, &v1beta1::DevicePlugin::Stub::Allocate, {}, left).status();
    if (!status.ok()) {
      return absl::UnavailableError(
          absl::StrCat("no allocation of ", resource.name, " is served on ", path, ": ", status.message()));
    }
  }
  return absl::OkStatus();
}

}  // namespace rnicd::kubernetes
