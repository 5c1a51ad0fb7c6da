#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "daemon/app/config/system_config_linux.h"
#include "daemon/app/host/hidden_paths_linux.h"
#include "daemon/app/host/system_door.h"
#include "daemon/transport/front_door.h"
#include "daemon/transport/socket_directory.h"

namespace rnicd::app {
namespace {

class SocketDoor final : public SystemDoor {
 public:
  SocketDoor(const transport::FrontDoorOptions& options, const door::Services& services,
             const transport::SocketDirectories& directories)
      : directories_(directories), door_(options, services) {}

  absl::Status Start() override { return door_.Start(directories_); }
  void StopAccepting() override { door_.StopAccepting(); }
  void Stop() override { door_.Stop(); }
  uint64_t connections() const override { return door_.connections(); }
  core::Doors* doors() override { return &door_.doors(); }
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
  transport::FrontDoor door_;
};

class SocketNames final : public DoorNames {
 public:
  SocketNames(transport::SocketDirectory workloads, transport::SocketDirectory operators,
              transport::SocketDirectory doors)
      : workloads_(std::make_unique<transport::SocketDirectory>(std::move(workloads))),
        operators_(std::make_unique<transport::SocketDirectory>(std::move(operators))),
        doors_(std::make_unique<transport::SocketDirectory>(std::move(doors))) {}

  std::string workloads() const override { return workloads_->path(); }
  std::string operators() const override { return operators_->path(); }
  std::unique_ptr<SystemDoor> MakeDoor(const Config& config, const door::Services& services) const override {
    transport::FrontDoorOptions options;
    options.limits = config.connections;
    options.socket_mode = config.system->socket_mode;
    return std::make_unique<SocketDoor>(
        options, services,
        transport::SocketDirectories{.workloads = *workloads_, .operators = *operators_, .doors = *doors_});
  }

 private:
  const std::unique_ptr<transport::SocketDirectory> workloads_;
  const std::unique_ptr<transport::SocketDirectory> operators_;
  const std::unique_ptr<transport::SocketDirectory> doors_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<DoorNames>> ClaimDoorNames(const Config& config) {
  RNICD_ASSIGN_OR_RETURN(transport::SocketDirectory workloads,
                         transport::SocketDirectory::Claim(config.system->socket_dir, kWorkloadDirectoryMode));
  // Before anything is made in the operators' directory, and for the one that is then there.
  RNICD_RETURN_IF_ERROR(CheckHiddenFromContainers(config));
  RNICD_ASSIGN_OR_RETURN(transport::SocketDirectory operators,
                         transport::SocketDirectory::Claim(config.system->admin_socket_dir, kOperatorDirectoryMode));
  RNICD_ASSIGN_OR_RETURN(transport::SocketDirectory doors,
                         transport::SocketDirectory::Claim(config.system->door_dir, kDoorDirectoryMode));
  RNICD_RETURN_IF_ERROR(CheckHiddenFromContainers(config));
  return std::make_unique<SocketNames>(std::move(workloads), std::move(operators), std::move(doors));
}

}  // namespace rnicd::app
