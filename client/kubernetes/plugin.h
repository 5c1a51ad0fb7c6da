#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
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
#include "client/kubernetes/node_view.h"
#include "client/kubernetes/pod_resources.h"
#include "log/library_log/library_log.h"
#include "log/logger.h"

namespace rnicd::kubernetes {

// The device plugin of a node: connects the parts and polls the daemon once a second.
// Threads: one thread calls Start and Stop; the kubelet's calls run Allocate and Prepare.
class Plugin final : public Allocator {
 public:
  // `on_failure` is called once, by a thread of the plugin, when failure() is set.
  Plugin(Config config, std::function<void()> on_failure);
  // Calls Stop.
  ~Plugin() override;

  // Errors, with text for people: a state directory or a grants.json that cannot be used, a socket path that is too
  // long. A grants.json that cannot be parsed was moved aside, and is no error.
  absl::Status Start();
  // Grants, and the pods that hold them, are not affected.
  void Stop();

  // The resources of the flags do not fit into the pool, so the plugin has nothing to offer.
  absl::Status failure() const;

  const log::Logger& logger() const { return logger_; }

  absl::StatusOr<ContainerAllocation> Allocate(const std::string& resource,
                                               const std::vector<std::string>& device_ids) override;
  absl::Status Prepare(const std::string& resource, const std::vector<std::string>& device_ids) override;
  void KubeletConnected() override;
  std::set<std::string> DevicesToAvoid(const std::string& resource) override;
  void AwaitTurn() override;

 private:
  void Run();
  bool WaitUntilStop(std::chrono::milliseconds longest);
  // Whether something was allocated since the last call. Also takes over renew_soon_.
  bool TakeReconcileSoon();
  // Polls the daemon; renews the grants in a new one.
  void PollDaemon();
  // Asks the kubelet for the holders of devices and the cluster for their pods, revokes grants, and updates the daemon.
  void Reconcile();
  // Fills in what the kubelet reports. Returns whether it listed its pods; `complete` becomes whether everything that
  // revoking grants needs is known.
  bool ObserveKubelet(Observation& observation, bool& complete);
  void ObserveCluster(Observation& observation);
  void ReportPods(std::span<const Holder> holders, bool listed);
  void Fail(const absl::Status& failure);
  std::optional<uint64_t> OfferedBytes(const GrantRecord& record) const;
  // Errors, as text for people: pods hold devices that the node does not offer any more.
  absl::Status CheckPool() const;
  std::vector<std::string> ResourcesInUse() const;
  ContainerAllocation AllocationFor(const std::string& secret) const;
  // Logs a failure of one kind when its text changes, and when it ends.
  void LogOnChange(const char* what, const absl::Status& status, std::string& last) const;

  const Config config_;
  const std::function<void()> on_failure_;
  const log::Logger logger_;
  const SteadyClock clock_;
  library_log::LibraryLog library_log_{logger_, clock_};
  const std::unique_ptr<RandomSource> random_;
  AdminDaemon daemon_;
  GrantFile file_;
  GrantKeeper keeper_;
  DaemonWatch watch_;
  const PodResources pod_resources_;
  const Cluster cluster_;
  // Started after the daemon's first response: before that the devices are unknown.
  std::unique_ptr<KubeletLink> link_;

  // Used by the thread only, as are the members up to mutex_.
  std::vector<ClusterPod> cluster_pods_;
  bool renewal_is_due_ = false;
  // The daemon is new and knows no pods, so the report does not wait for its interval nor for the registration.
  bool report_is_due_ = false;
  std::string renew_trouble_, link_trouble_, holders_trouble_, checkpoint_trouble_, cluster_trouble_, revoke_trouble_,
      pods_trouble_, pool_trouble_;

  mutable Mutex mutex_;
  ConditionVariable wake_;
  bool stopping_ RNICD_GUARDED_BY(mutex_) = false;
  // Something was allocated: the kubelet will soon know its holder.
  bool reconcile_soon_ RNICD_GUARDED_BY(mutex_) = false;
  // The daemon did not respond to an allocation: it may have a grant that is not in the file.
  bool renew_soon_ RNICD_GUARDED_BY(mutex_) = false;
  absl::Status failure_ RNICD_GUARDED_BY(mutex_);
  std::thread thread_;
};

// Checks through the plugin's own sockets that an allocation of each resource could begin, within a few seconds in all.
// Errors: the resource of which no allocation is served, its socket, and the reason.
absl::Status ProbePlugin(const Config& config);

}  // namespace rnicd::kubernetes
