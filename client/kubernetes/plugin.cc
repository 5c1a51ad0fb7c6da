#include "client/kubernetes/plugin.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/system/this_process.h"
#include "client/kubernetes/kubelet/grpc_channel.h"
#include "grpc/support/log.h"
#include "kubelet/v1beta1/device_plugin.grpc.pb.h"
#include "log/library_log/routes.h"

namespace rnicd::kubernetes {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// A daemon that is not away needs less than this, also on a loaded node.
constexpr milliseconds kShortestCallTimeout(1'000);
constexpr milliseconds kProbeTimeout(3'000);

// A failed check of gRPC is one error line and then abort(), which looks like any other error here.
void OnLine(gpr_log_func_args* args) {
  library_log::WriteLibraryLine(
      {.library = library_log::Library::kGrpc, .file = args->file, .line = args->line, .text = args->message});
}

// Hands gRPC's log lines to the LibraryLog, if there is one, for the rest of the process's life.
void RouteGrpcLines() {
  gpr_set_log_function(&OnLine);
  // Reads GRPC_VERBOSITY. gRPC drops every line until that is done, by this or by its first use.
  gpr_log_verbosity_init();
}

GrantOptions WithOffer(GrantOptions options, OfferedBytes offered_bytes) {
  options.offered_bytes = std::move(offered_bytes);
  return options;
}

}  // namespace

Plugin::Plugin(Config config, std::function<void(const absl::Status&)> on_failure)
    : config_(std::move(config)),
      on_failure_(std::move(on_failure)),
      logger_(config_.log),
      random_(std::make_unique<KernelRandom>()),
      daemon_(config_.admin_socket_dir, std::max(config_.daemon_timeout, kShortestCallTimeout)),
      file_(config_.state_dir),
      keeper_(daemon_, file_, *random_, logger_,
              WithOffer(config_.grants,
                        [this](const GrantRecord& record) {
                          return watch_.OfferedBytes(record.resource, record.device_ids);
                        })),
      watch_(daemon_, clock_, logger_,
             {.resources = config_.resources,
              .pool_bytes = config_.pool_bytes,
              .machine_bytes = MachineMemoryBytes(),
              .timeout = config_.daemon_timeout}),
      allocator_(config_, keeper_) {
  RouteGrpcLines();
}

Plugin::~Plugin() { Stop(); }

absl::Status Plugin::Start() {
  if (const absl::Status loaded = keeper_.Load(); absl::IsDataLoss(loaded)) {
    logger_.Error("grants that the daemon does not know are lost", {{"error", std::string(loaded.message())}});
  } else if (!loaded.ok()) {
    return loaded;
  }
  std::vector<OfferedResource> offered;
  for (const auto& [resource, board] : watch_.boards()) {
    offered.push_back({.name = resource, .board = board.get()});
  }
  link_ = std::make_unique<KubeletLink>(config_.kubelet, std::move(offered), allocator_, logger_);
  upkeep_ = std::make_unique<Upkeep>(
      config_,
      Upkeep::Parts{.daemon = daemon_, .keeper = keeper_, .watch = watch_, .allocator = allocator_, .link = *link_},
      logger_, on_failure_);
  upkeep_->Start();
  return absl::OkStatus();
}

void Plugin::Stop() {
  if (upkeep_ != nullptr) {
    upkeep_->Stop();
    link_->Stop();
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
