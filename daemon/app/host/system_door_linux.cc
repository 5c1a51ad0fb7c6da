#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "daemon/app/config/system_config_linux.h"
#include "daemon/app/host/hidden_paths_linux.h"
#include "daemon/app/host/socket_names_linux.h"
#include "daemon/app/host/system_door.h"
#include "daemon/transport/front_door.h"
#include "daemon/transport/socket_directory.h"

namespace rnicd::app {
namespace {

class SocketDoor final : public SystemDoor {
 public:
  SocketDoor(const transport::FrontDoorOptions& options, const door::Services& services,
             const transport::SocketDirectories& directories, transport::HandedDoor inherited)
      : directories_(directories), inherited_(std::move(inherited)), door_(options, services) {}

  absl::Status Start() override { return door_.Start(directories_, std::move(inherited_)); }
  void StopAccepting() override { door_.StopAccepting(); }
  void Stop() override { door_.Stop(); }
  uint64_t connections() const override { return door_.connections(); }
  core::Doors* doors() override { return &door_.doors(); }
  transport::FrontDoor& front_door() { return door_; }
  // The watcher looks through sessions, tenants and grants five times a second, so it hangs with any of their locks.
  std::vector<health::ServingPart> Parts() override {
    using Thread = transport::FrontDoor::Thread;
    return {PartOf("acceptor of workloads", Thread::kWorkloads),
            PartOf("acceptor of operators", Thread::kOperators),
            PartOf("acceptor of doors", Thread::kDoors),
            PartOf("front door", Thread::kWatcher),
            {"sockets", [this](const health::ServingPart::Answer& answer) { answer(door_.trouble().value_or("")); }}};
  }

 private:
  health::ServingPart PartOf(const char* name, transport::FrontDoor::Thread thread) {
    return health::PartThatRuns(name,
                                [this, thread](std::function<void()> task) { door_.Post(thread, std::move(task)); });
  }

  const transport::SocketDirectories directories_;
  transport::HandedDoor inherited_;
  transport::FrontDoor door_;
};

using Route = std::function<bool(const transport::AdmittedConnection&)>;

class SocketNames final : public DoorNames {
 public:
  struct Directories {
    transport::SocketDirectory workloads;
    transport::SocketDirectory operators;
    transport::SocketDirectory doors;
  };

  SocketNames(Directories directories, transport::HandedDoor inherited, Route route)
      : directories_(std::make_unique<Directories>(std::move(directories))),
        inherited_(std::move(inherited)),
        route_(std::move(route)) {}

  std::string workloads() const override { return directories_->workloads.path(); }
  std::string operators() const override { return directories_->operators.path(); }
  std::unique_ptr<SystemDoor> MakeDoor(const Config& config, const door::Services& services) override {
    transport::FrontDoorOptions options;
    options.limits = config.connections;
    options.socket_mode = config.system->socket_mode;
    options.route = route_;
    return std::make_unique<SocketDoor>(
        options, services,
        transport::SocketDirectories{
            .workloads = directories_->workloads, .operators = directories_->operators, .doors = directories_->doors},
        std::move(inherited_));
  }

 private:
  const std::unique_ptr<Directories> directories_;
  transport::HandedDoor inherited_;
  const Route route_;
};

// The directory, by its lock if that is inherited.
absl::StatusOr<transport::SocketDirectory> Claim(const std::string& path, mode_t mode, UniqueFd lock) {
  return lock.valid() ? transport::SocketDirectory::Adopt(path, mode, std::move(lock))
                      : transport::SocketDirectory::Claim(path, mode);
}

absl::StatusOr<std::unique_ptr<DoorNames>> NamesIn(const Config& config, transport::HandedDoor inherited, Route route) {
  const SystemConfig& system = *config.system;
  RNICD_ASSIGN_OR_RETURN(transport::SocketDirectory workloads,
                         Claim(system.socket_dir, kWorkloadDirectoryMode, std::move(inherited.workloads_lock)));
  // Before anything is made in the operators' directory, and for the one that is then there.
  RNICD_RETURN_IF_ERROR(CheckHiddenFromContainers(config));
  RNICD_ASSIGN_OR_RETURN(transport::SocketDirectory operators,
                         Claim(system.admin_socket_dir, kOperatorDirectoryMode, std::move(inherited.operators_lock)));
  RNICD_ASSIGN_OR_RETURN(transport::SocketDirectory doors,
                         Claim(system.door_dir, kDoorDirectoryMode, std::move(inherited.doors_lock)));
  RNICD_RETURN_IF_ERROR(CheckHiddenFromContainers(config));
  return std::make_unique<SocketNames>(
      SocketNames::Directories{
          .workloads = std::move(workloads), .operators = std::move(operators), .doors = std::move(doors)},
      std::move(inherited), std::move(route));
}

}  // namespace

absl::StatusOr<std::unique_ptr<DoorNames>> ClaimDoorNames(const Config& config) { return NamesIn(config, {}, {}); }

absl::StatusOr<std::unique_ptr<DoorNames>> AdoptDoorNames(const Config& config, transport::HandedDoor inherited,
                                                          Route route) {
  return NamesIn(config, std::move(inherited), std::move(route));
}

transport::FrontDoor& FrontDoorOf(SystemDoor& door) { return static_cast<SocketDoor&>(door).front_door(); }

}  // namespace rnicd::app
