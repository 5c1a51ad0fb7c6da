#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/files/unique_fd.h"
#include "base/secrets/secret.h"
#include "base/status.h"
#include "daemon/app/config/system_config_linux.h"
#include "daemon/app/host/fast_module_linux.h"
#include "daemon/app/host/hidden_paths_linux.h"
#include "daemon/app/host/process_host.h"
#include "daemon/app/host/service_manager_linux.h"
#include "daemon/handover/predecessor.h"
#include "daemon/sandbox/sandbox.h"
#include "daemon/transport/socket_directory.h"
#include "provider/soft/net/soft_folder_linux.h"

namespace rnicd::app {
namespace {

// Returns the limit that is then in force.
uint64_t RaiseLimit(__rlimit_resource_t resource) {
  rlimit limit = {.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
  if (getrlimit(resource, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(resource, &limit);
  }
  return limit.rlim_max;
}

// Before the sandbox, which forbids to connect.
absl::Status JoinSoftNetwork(Config& config) {
  const std::string& folder = config.system->soft_network;
  if (config.provider != "soft" || folder.empty()) {
    return absl::OkStatus();
  }
  RNICD_RETURN_IF_ERROR(transport::SocketDirectory::Make(folder, kOperatorDirectoryMode));
  RNICD_ASSIGN_OR_RETURN(config.soft.network, provider::SoftFolder::Open(folder, provider::AddressesOf(config.soft)));
  return absl::OkStatus();
}

// Before the sandbox as well. Nobody else finds the directory's socket.
absl::Status MeetPredecessor(SystemConfig& system) {
  RNICD_RETURN_IF_ERROR(transport::SocketDirectory::Make(system.handover_dir, kOperatorDirectoryMode));
  RNICD_ASSIGN_OR_RETURN(system.predecessor, handover::Predecessor::Connect(system.handover_dir));
  return absl::OkStatus();
}

class SignalHost final : public ProcessHost {
 public:
  // Blocks the signals: every thread that is started later inherits it, and only the descriptor sees them. The sandbox
  // lets nobody make one.
  SignalHost() {
    sigset_t signals;
    sigemptyset(&signals);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
      sigaddset(&signals, signal);
    }
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    signals_ = UniqueFd(signalfd(-1, &signals, SFD_CLOEXEC));
  }

  absl::StatusOr<log::Field> Confine(Config& config) override {
    if (config.provider == "verbs") {
      OpenFastModule(config.system->verbs);
    }
    // Made before, so that the rules of the sandbox name them and nothing above them. ClaimDoorNames checks once more.
    RNICD_RETURN_IF_ERROR(transport::SocketDirectory::Make(config.system->socket_dir, kWorkloadDirectoryMode));
    RNICD_RETURN_IF_ERROR(CheckHiddenFromContainers(config));
    RNICD_RETURN_IF_ERROR(transport::SocketDirectory::Make(config.system->admin_socket_dir, kOperatorDirectoryMode));
    RNICD_RETURN_IF_ERROR(transport::SocketDirectory::Make(config.system->door_dir, kDoorDirectoryMode));
    RNICD_RETURN_IF_ERROR(MeetPredecessor(*config.system));
    RNICD_RETURN_IF_ERROR(JoinSoftNetwork(config));
    RNICD_ASSIGN_OR_RETURN(const sandbox::Confinement confinement, sandbox::EnterSandbox(config.system->sandbox));
    return log::Field("landlock", confinement.landlock_version);
  }

  absl::Status ConfineServing(const Config& config) override {
    // The library of digests reads its settings, which may load more of it, when it is first used.
    (void)SecretDigest::Of("");
    return sandbox::NarrowSandbox(config.system->sandbox);
  }

  std::optional<uint64_t> RaiseDescriptorLimit(uint64_t wanted) override {
    const uint64_t limit = RaiseLimit(RLIMIT_NOFILE);
    return limit < wanted ? std::optional(limit) : std::nullopt;
  }

  std::optional<uint64_t> RaiseFileSizeLimit() override {
    const uint64_t limit = RaiseLimit(RLIMIT_FSIZE);
    return limit != RLIM_INFINITY ? std::optional(limit) : std::nullopt;
  }

  void OnServing() override { manager_.Serves(kServing); }
  void OnReloading() override { manager_.Reloads(SteadyClock().Now()); }
  void OnReloaded() override { OnServing(); }
  void OnStopping() override { manager_.Stops(); }
  void OnChecked(const health::ServingVerdict& verdict, bool changed) override {
    if (changed) {
      const std::string text = verdict.Text();
      manager_.SetStatus(verdict.serves() ? kServing : std::string_view(text).substr(0, text.find('\n')));
    }
    if (verdict.live()) {
      manager_.StaysAlive(SteadyClock().Now());
    }
  }

  Asked Wait() override {
    std::array<pollfd, 2> waits = {
        {{.fd = signals_.get(), .events = POLLIN, .revents = 0}, {.fd = end_.get(), .events = POLLIN, .revents = 0}}};
    while (poll(waits.data(), waits.size(), -1) <= 0) {
    }
    signalfd_siginfo signal = {};
    if (waits[0].revents == 0 || read(signals_.get(), &signal, sizeof(signal)) != sizeof(signal)) {
      eventfd_t ends = 0;
      eventfd_read(end_.get(), &ends);
      return {.order = Order::kEnd, .by = log::Field("by", "itself")};
    }
    return {.order = signal.ssi_signo == SIGHUP ? Order::kReloadPolicy : Order::kStop,
            .by = log::Field("signal", signal.ssi_signo)};
  }

  void End() override { eventfd_write(end_.get(), 1); }

 private:
  static constexpr std::string_view kServing = "serves";

  UniqueFd signals_;
  const UniqueFd end_{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  // Made before Confine, which forbids to connect.
  ServiceManager manager_{ServiceManager::FromEnvironment()};
};

}  // namespace

int RunInHost(const std::function<int(ProcessHost&)>& run) {
  SignalHost host;
  return run(host);
}

}  // namespace rnicd::app
