#include "client/kubernetes/kubelet/kubelet_link.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/mutex.h"
#include "client/kubernetes/kubelet/folder_watch.h"
#include "client/kubernetes/kubelet/grpc_channel.h"
#include "client/kubernetes/kubelet/registrar.h"
#include "client/kubernetes/kubelet/resource_link.h"

namespace rnicd::kubernetes {
namespace {

// Poll interval while the folder does not exist or cannot be watched.
constexpr std::chrono::milliseconds kUnwatchedPollInterval{1'000};

}  // namespace

class KubeletLink::Impl {
 public:
  Impl(KubeletOptions options, std::vector<OfferedResource> resources, Allocator& allocator, const log::Logger& logger)
      : options_(std::move(options)), logger_(logger), watch_(options_.folder) {
    for (OfferedResource& resource : resources) {
      links_.push_back(std::make_unique<ResourceLink>(ResourceLink::Parts{.options = options_,
                                                                          .allocator = allocator,
                                                                          .clock = clock_,
                                                                          .logger = logger,
                                                                          .registrar = registrar_,
                                                                          .wake = [this] { watch_.Wake(); }},
                                                      std::move(resource)));
    }
  }

  absl::Status Start() {
    std::set<std::string> paths;
    for (const auto& link : links_) {
      if (!paths.insert(link->path()).second) {
        return absl::InvalidArgumentError("two resources would have the socket " + link->path());
      }
      if (!FitsUnixAddress(NewSocketPath(link->path()))) {
        return absl::InvalidArgumentError("the path of a socket is too long: " + link->path());
      }
    }
    MutexLock lock(mutex_);
    thread_ = std::thread([this] { Run(); });
    return absl::OkStatus();
  }

  void Stop() {
    stopping_.store(true);
    registrar_.Cancel();
    watch_.Wake();
    MutexLock lock(mutex_);
    if (thread_.joinable()) {
      thread_.join();
    }
  }

  bool registered() const {
    return std::all_of(links_.begin(), links_.end(), [](const auto& link) { return link->up(); });
  }

 private:
  using Time = ResourceLink::Time;

  void Run() {
    bool was_followed = true;
    while (!stopping_.load()) {
      const bool followed = watch_.Follow();
      if (!followed && was_followed) {
        logger_.Warning("the kubelet's folder is not there or cannot be watched", {{"folder", options_.folder}});
      }
      was_followed = followed;
      const Time next =
          PollAll(followed ? options_.poll_interval : std::min(options_.poll_interval, kUnwatchedPollInterval));
      watch_.Wait(std::chrono::ceil<std::chrono::milliseconds>(next - clock_.Now()));
    }
    for (const auto& link : links_) {
      link->Stop();
    }
  }

  // Returns when to poll again.
  Time PollAll(std::chrono::milliseconds interval) {
    const std::optional<FileIdentity> kubelet = IdentityOf(options_.folder + "/kubelet.sock");
    if (!kubelet.has_value() && !waiting_) {
      logger_.Info("waiting for the kubelet", {{"socket", options_.folder + "/kubelet.sock"}});
    }
    waiting_ = !kubelet.has_value();
    Time next = clock_.Now() + interval;
    for (const auto& link : links_) {
      next = std::min(next, link->Poll(kubelet));
    }
    return next;
  }

  const KubeletOptions options_;
  const SteadyClock clock_;
  const log::Logger& logger_;
  FolderWatch watch_;
  Registrar registrar_;
  std::vector<std::unique_ptr<ResourceLink>> links_;
  // No kubelet.sock exists. Used by the thread only.
  bool waiting_ = false;
  std::atomic<bool> stopping_{false};
  Mutex mutex_;
  std::thread thread_ RNICD_GUARDED_BY(mutex_);
};

KubeletLink::KubeletLink(KubeletOptions options, std::vector<OfferedResource> resources, Allocator& allocator,
                         const log::Logger& logger)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(resources), allocator, logger)) {}

KubeletLink::~KubeletLink() { Stop(); }

absl::Status KubeletLink::Start() { return impl_->Start(); }

void KubeletLink::Stop() { impl_->Stop(); }

bool KubeletLink::registered() const { return impl_->registered(); }

}  // namespace rnicd::kubernetes
