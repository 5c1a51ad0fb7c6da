#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "daemon/core/generation/inheritance.h"
#include "daemon/core/generation/share.h"
#include "daemon/core/request/node.h"
#include "daemon/core/session/session_registry.h"

namespace rnicd::core {

// The older of two generations of the daemon: it opens no sessions any more, and what its sessions hold grows only
// when the newer one has counted it.
// Lifetime: node and registry outlive it.
// Threads:  safe.
class Retirement {
 public:
  Retirement(Node& node, SessionRegistry& registry) : node_(node), registry_(registry) {}
  ~Retirement() { Cancel(); }

  // From now on: opening a session, and changing a grant, is refused with DAEMON_HANDED_OVER, ledgers are capped,
  // processes only become fewer. `on_gone`: see SessionRegistry::HandOver; it names only processes of the answer.
  Inheritance Begin(std::function<void(const ProcessKey&)> on_gone);
  // As before Begin. The newer generation has ended, or counts nothing as foreign use.
  void Cancel();
  // Whether the process has a session here.
  bool Holds(const ProcessKey& process) const { return registry_.Holds(process); }
  // No session is left.
  bool empty() const { return registry_.WaitUntilEmpty(Instant{}); }

  struct Changes {
    // Less than before: to be told, once.
    std::vector<HeldUse> shrunk;
    // More than before: to be asked for, once; Granted takes the answer.
    std::vector<HeldUse> wanted;
  };
  // Call it about every 200 ms, and after `on_gone`. The newer generation must hear of the changes in the order of the
  // calls. When a message is lost, nothing further may arrive.
  Changes Tick();
  void Granted(const HeldUse& lease);
  // The newer generation has bound the grant to a pod, or, with an empty UID, has revoked it. Ends the sessions that it
  // refuses now.
  void Narrow(GrantId grant, const std::string& pod_uid);

 private:
  void ForgetOver() RNICD_REQUIRES(mutex_);

  Node& node_;
  SessionRegistry& registry_;
  Mutex mutex_;
  std::vector<Share> shares_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::core
