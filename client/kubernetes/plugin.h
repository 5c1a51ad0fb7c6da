#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/random.h"
#include "client/kubernetes/admin_daemon.h"
#include "client/kubernetes/allocator.h"
#include "client/kubernetes/cluster.h"
#include "client/kubernetes/config.h"
#include "client/kubernetes/daemon_watch.h"
#include "client/kubernetes/grant_file.h"
#include "client/kubernetes/grant_keeper.h"
#include "client/kubernetes/kubelet_link.h"
#include "client/kubernetes/pod_resources.h"
#include "daemon/log/logger.h"

namespace rnicd::kubernetes {

// The device plugin of a node: puts the parts together, and looks around once a second.
// Threads: Start and Stop by one thread; Allocate and Prepare by the kubelet's calls.
class Plugin final : public Allocator {
 public:
  explicit Plugin(Config config);
  // Stops.
  ~Plugin() override;

  // Errors, for people: a state directory or a grants.json that cannot be used, a socket's path that is too long.
  absl::Status Start();
  // Grants, and the pods that hold them, stay as they are.
  void Stop();

  const log::Logger& logger() const { return logger_; }

  absl::StatusOr<ContainerGift> Allocate(const std::string& resource,
                                         const std::vector<std::string>& device_ids) override;
  absl::Status Prepare(const std::string& resource, const std::vector<std::string>& device_ids) override;

 private:
  void Run();
  bool WaitUntilStop(std::chrono::milliseconds longest);
  // Looks at the daemon; a new one is told of the grants.
  void LookAtDaemon();
  // Asks the kubelet who holds what, and the cluster who they are; revokes, and tells the daemon.
  void Reconcile();
  std::vector<std::string> ResourcesInUse() const;
  std::vector<ClusterPod> PodsOfTheCluster();
  ContainerGift GiftWith(const std::string& secret) const;
  // Logs a failure of one kind when its text changes, and its end.
  void Note(const char* what, const absl::Status& status, std::string& last) const;

  const Config config_;
  const log::Logger logger_;
  const SteadyClock clock_;
  const std::unique_ptr<RandomSource> random_;
  AdminDaemon daemon_;
  GrantFile file_;
  GrantKeeper keeper_;
  DaemonWatch watch_;
  const PodResources pod_resources_;
  const Cluster cluster_;
  // Started when the daemon has answered for the first time: before that nobody knows which devices there are.
  std::unique_ptr<KubeletLink> link_;

  // Of the thread.
  std::vector<ClusterPod> cluster_pods_;
  bool renewal_is_due_ = false;
  std::string renew_trouble_, link_trouble_, holders_trouble_, cluster_trouble_, revoke_trouble_, pods_trouble_;

  Mutex mutex_;
  ConditionVariable wake_;
  bool stopping_ RNICD_GUARDED_BY(mutex_) = false;
  // Something was allocated: its holder will be known soon.
  bool look_soon_ RNICD_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

// Asks a running plugin by its own sockets. Errors: which resource is not served, and why.
absl::Status ProbePlugin(const Config& config);

}  // namespace rnicd::kubernetes
