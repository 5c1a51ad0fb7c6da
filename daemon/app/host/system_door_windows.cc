#include <functional>
#include <utility>
#include <vector>

#include "daemon/app/config/system_config_windows.h"
#include "daemon/app/host/system_door.h"
#include "daemon/pipes/front_door.h"

namespace rnicd::app {
namespace {

class PipeDoor final : public SystemDoor {
 public:
  PipeDoor(const door::ConnectionLimits& limits, const door::Services& services, pipes::PipeNames names)
      : names_(std::move(names)), door_(limits, services) {}

  absl::Status Start() override { return door_.Start(names_); }
  void StopAccepting() override { door_.StopAccepting(); }
  void Stop() override { door_.Stop(); }
  uint64_t connections() const override { return door_.connections(); }
  core::Doors* doors() override { return nullptr; }
  std::vector<health::ServingPart> Parts() override {
    using Thread = pipes::FrontDoor::Thread;
    return {PartOf("pipes", Thread::kPipes), PartOf("acceptor of connections", Thread::kTcp)};
  }

 private:
  health::ServingPart PartOf(const char* name, pipes::FrontDoor::Thread thread) {
    return health::PartThatRuns(name,
                                [this, thread](std::function<void()> task) { door_.Post(thread, std::move(task)); });
  }

  const pipes::PipeNames names_;
  pipes::FrontDoor door_;
};

class NamesOfPipes final : public DoorNames {
 public:
  explicit NamesOfPipes(pipes::PipeNames names) : names_(std::move(names)) {}

  std::string workloads() const override { return names_.workloads; }
  std::string operators() const override { return names_.operators; }
  std::unique_ptr<SystemDoor> MakeDoor(const Config& config, const door::Services& services) override {
    return std::make_unique<PipeDoor>(config.connections, services, names_);
  }

 private:
  const pipes::PipeNames names_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<DoorNames>> ClaimDoorNames(const Config& config) {
  return std::make_unique<NamesOfPipes>(config.system->pipes);
}

}  // namespace rnicd::app
