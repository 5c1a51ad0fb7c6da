#pragma once

#include <chrono>
#include <functional>
#include <span>
#include <thread>

#include "base/mutex.h"
#include "client/kubernetes/config.h"
#include "client/kubernetes/container_allocator.h"
#include "client/kubernetes/daemon_watch.h"
#include "client/kubernetes/grants/daemon.h"
#include "client/kubernetes/grants/grant_keeper.h"
#include "client/kubernetes/kubelet/kubelet_link.h"
#include "client/kubernetes/node_observer.h"
#include "client/kubernetes/trouble_log.h"
#include "log/logger.h"

namespace rnicd::kubernetes {

// What the plugin does without being asked: polls the daemon once a second, and makes grants, pods and the daemon's
// list of them agree.
// Lifetime: all arguments outlive it.
// Threads:  one of its own; another one calls Start and Stop.
class Upkeep {
 public:
  struct Parts {
    Daemon& daemon;
    GrantKeeper& keeper;
    DaemonWatch& watch;
    ContainerAllocator& allocator;
    KubeletLink& link;
  };
  // `on_failure` is called once, by the thread, when the resources of the flags do not fit into the pool.
  Upkeep(const Config& config, const Parts& parts, const log::Logger& logger,
         const std::function<void(const absl::Status&)>& on_failure);
  // Calls Stop.
  ~Upkeep();

  void Start();
  // Closes the boards too, because the streams on them would hold up the link's end.
  void Stop();

 private:
  void Run();
  bool WaitUntilStop(std::chrono::milliseconds longest);
  // Polls the daemon; renews the grants in a new one.
  void PollDaemon();
  // Observes the node, revokes grants, and updates the daemon.
  void Reconcile();
  void ReportPods(std::span<const Holder> holders, bool listed);
  // Errors, as text for people: pods hold devices that the node does not offer any more.
  absl::Status CheckPool() const;

  const Config& config_;
  const Parts parts_;
  const std::function<void(const absl::Status&)>& on_failure_;

  // Used by the thread only, as are the members up to mutex_.
  TroubleLog troubles_;
  NodeObserver observer_;
  bool renewal_is_due_ = false;
  // The daemon is new and knows no pods, so the report does not wait for its interval nor for the registration.
  bool report_is_due_ = false;

  Mutex mutex_;
  ConditionVariable wake_;
  bool stopping_ RNICD_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace rnicd::kubernetes
