#include "tests/support/shared_daemon.h"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <utility>

namespace rnicd::test {
namespace {

std::map<std::vector<std::string>, SharedDaemon>& Daemons() {
  static std::map<std::vector<std::string>, SharedDaemon> daemons;
  return daemons;
}

class StopDaemonsAtTheEnd : public testing::Environment {
 public:
  void TearDown() override {
    for (auto& [flags, shared] : Daemons()) {
      shared.process->BeginStop();
    }
    for (auto& [flags, shared] : Daemons()) {
      const absl::Status stopped = shared.process->Stop();
      EXPECT_TRUE(stopped.ok()) << stopped;
    }
    Daemons().clear();
  }
};

[[maybe_unused]] testing::Environment* const kEnvironment = testing::AddGlobalTestEnvironment(new StopDaemonsAtTheEnd);

}  // namespace

SharedDaemon& DaemonWith(const std::vector<std::string>& flags) {
  SharedDaemon& shared = Daemons()[flags];
  if (shared.process != nullptr && shared.process->process().running()) {
    return shared;
  }
  if (shared.process != nullptr) {
    ADD_FAILURE() << "the shared daemon died; its log: " << shared.process->log();
  }
  auto started = DaemonProcess::Start({.flags = flags});
  if (!started.ok()) {
    std::fprintf(stderr, "%s\n", started.status().ToString().c_str());
    std::exit(1);
  }
  shared.process = *std::move(started);
  shared.idle = MeasureIdle(*shared.process);
  return shared;
}

}  // namespace rnicd::test
