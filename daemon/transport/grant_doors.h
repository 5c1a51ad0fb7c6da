#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/strong_id.h"
#include "daemon/core/tenant/doors.h"
#include "daemon/core/tenant/tenant.h"
#include "daemon/transport/acceptor.h"
#include "daemon/transport/inbox.h"
#include "daemon/transport/socket_directory.h"
#include "log/logger.h"

namespace rnicd::transport {

// The doors of grants, each in a directory of its own that is named by the grant's id. A directory outlives the daemon,
// because a container that has mounted it would otherwise keep a deleted one: it waits for the grant's renewal. Those
// that are not renewed within a day of this daemon are removed.
// Lifetime: what it is given outlives it, but for the tasks that it runs.
// Threads:  those of core::Doors and `trouble` from any, StopAccepting from one, the others on that of `run`.
class GrantDoors final : public core::Doors {
 public:
  struct Options {
    mode_t socket_mode = 0666;
    // Runs a task on the thread that keeps the sockets.
    std::function<void(Inbox::Task)> run;
    // Ends the connections of callers that came through the tenant's door, each when its session has ended. Called on
    // that thread.
    std::function<void(const std::shared_ptr<core::Tenant>&)> disconnect;
  };

  GrantDoors(SocketDirectory& directory, Options options, const Clock& clock, const log::Logger& logger,
             Acceptor& acceptor);

  std::string DirectoryOf(GrantId grant) const override;
  void Open(std::shared_ptr<core::Tenant> tenant, OnOpen done) override;
  void Close(GrantId grant, OnClosed done) override;

  // Opens the doors that another daemon had: those of grants without a tenant here are closed. Before others are
  // opened. Errors: DOOR_UNAVAILABLE.
  using Tenants = std::map<GrantId, std::shared_ptr<core::Tenant>>;
  absl::Status Inherit(std::vector<HandedSocket> sockets, const Tenants& tenants);
  // While they are lent to another daemon, no door is made or removed; those who came through one whose grant has ended
  // are disconnected all the same.
  void SetLent(bool lent);
  // The tenant whose door it is; null when it has none.
  std::shared_ptr<core::Tenant> TenantOf(GrantId grant) const;
  // Periodic work: closes the doors of grants that have expired, and makes sockets again that were removed.
  void Tick();
  // Takes the names of the sockets away; from now on there is no new door.
  void StopAccepting();
  // Why clients do not find their doors; empty when they find all.
  std::optional<std::string> trouble() const;

 private:
  struct GrantDoor;

  absl::Status OpenNow(const std::shared_ptr<core::Tenant>& tenant, std::vector<HandedSocket> inherited = {})
      RNICD_EXCLUDES(mutex_);
  void CloseNow(GrantId grant, const OnClosed& done) RNICD_EXCLUDES(mutex_);
  // The tenant of a grant that has ended, else null: its door is left as it is, or goes.
  std::shared_ptr<core::Tenant> LeaveDoor(GrantId grant) RNICD_REQUIRES(mutex_);
  std::shared_ptr<core::Tenant> RemoveDoor(GrantId grant) RNICD_REQUIRES(mutex_);
  // Looks at some doors in turn, so that thousands of them cost no more than a few.
  void Restore() RNICD_REQUIRES(mutex_);
  // The directory of a grant that has no door.
  void RemoveLeftover(const std::string& name) const RNICD_REQUIRES(mutex_);
  void RemoveLeftovers() RNICD_REQUIRES(mutex_);

  SocketDirectory& directory_;
  const Options options_;
  const Clock& clock_;
  const log::Logger& logger_;
  Acceptor& acceptor_;
  const Instant leftovers_end_;
  mutable Mutex mutex_;
  std::map<GrantId, std::unique_ptr<GrantDoor>> doors_ RNICD_GUARDED_BY(mutex_);
  // The last door that Restore looked at.
  GrantId restored_ RNICD_GUARDED_BY(mutex_);
  bool leftovers_removed_ RNICD_GUARDED_BY(mutex_) = false;
  bool stopped_ RNICD_GUARDED_BY(mutex_) = false;
  bool lent_ RNICD_GUARDED_BY(mutex_) = false;
  // Apart from the other, so that trouble() does not wait for the file system.
  mutable Mutex trouble_mutex_;
  std::string trouble_ RNICD_GUARDED_BY(trouble_mutex_);
};

}  // namespace rnicd::transport
