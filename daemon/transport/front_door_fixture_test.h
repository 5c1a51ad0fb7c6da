#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "daemon/core/session/core_fixture_test.h"
#include "daemon/core/session/names.h"
#include "daemon/door/recording_server_fake.h"
#include "daemon/transport/front_door.h"
#include "daemon/transport/identity/pod_names_test.h"
#include "rnicd/v1/fd_channel.pb.h"

namespace rnicd::transport {

inline std::string InPod(const std::string& uid, const std::string& id = kId) {
  return "/kubepods/pod" + uid + "/" + id;
}

// A front door, and this process in a control group that each test chooses.
class FrontDoorTest : public ::testing::Test {
 protected:
  FrontDoorTest() {
    char name[] = "/tmp/rnicd-test-XXXXXX";
    root_ = mkdtemp(name);
    for (const std::string& process : {std::string("self"), std::to_string(getpid())}) {
      std::filesystem::create_directories(root_ + "/proc/" + process);
    }
    std::ofstream(root_ + "/proc/self/cgroup") << "0::/system.slice/rnicd.service\n";
  }
  ~FrontDoorTest() override {
    if (door_ != nullptr) {
      door_->Stop();
    }
    std::filesystem::remove_all(root_);
  }

  void Open(uint64_t max_connections_of_one, const core::WorldOptions& world = {}, const core::Rate& rate = {},
            uint64_t max_connections = 0) {
    world_ = std::make_unique<core::World>(world);
    workloads_ = std::make_unique<SocketDirectory>(*SocketDirectory::Claim(root_ + "/w", 0755));
    operators_ = std::make_unique<SocketDirectory>(*SocketDirectory::Claim(root_ + "/o", 0700));
    doors_ = std::make_unique<SocketDirectory>(*SocketDirectory::Claim(root_ + "/d", 0700));
    limits_ = {.max = max_connections, .max_per_owner = max_connections_of_one, .rate = rate};
    StartDoor();
  }
  void StartDoor() {
    FrontDoorOptions options;
    options.limits = limits_;
    options.proc_folder = root_ + "/proc";
    door_ = std::make_unique<FrontDoor>(options, door::Services{.node = world_->node,
                                                                .registry = world_->registry,
                                                                .logger = logger_,
                                                                .bulkhead = bulkhead_,
                                                                .server = server_});
    ASSERT_TRUE(door_->Start({.workloads = *workloads_, .operators = *operators_, .doors = *doors_}).ok());
  }

  void BecomeProcessOf(const std::string& group) {
    std::ofstream(root_ + "/proc/" + std::to_string(getpid()) + "/cgroup") << "0::" << group << "\n";
  }
  // Connects as a process of this control group. Returns when the connection was admitted or refused.
  UniqueFd ConnectFrom(const std::string& path, bool to_operators = false) {
    BecomeProcessOf(path);
    const size_t decided = Decided();
    UniqueFd fd = Connect(to_operators);
    EXPECT_TRUE(Eventually([&] { return Decided() > decided; })) << "the connection was neither admitted nor refused";
    return fd;
  }
  UniqueFd Connect(bool to_operators = false) {
    return ConnectTo(to_operators ? root_ + "/o/" + core::kAdminSocketName : root_ + "/w/" + core::kRpcSocketName,
                     SOCK_STREAM);
  }
  static UniqueFd ConnectTo(const std::string& path, int type) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    UniqueFd fd(socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
    EXPECT_EQ(connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    return fd;
  }
  // What the daemon says to a connection to the fd socket that sends nothing; unset when it hangs up without a word.
  v1::ErrorDetail RefusalOnFdSocket() {
    const UniqueFd fd = ConnectTo(root_ + "/w/" + core::kFdSocketName, SOCK_SEQPACKET);
    std::array<char, 4096> bytes;
    const ssize_t size = recv(fd.get(), bytes.data(), bytes.size(), 0);
    v1::FdReply reply;
    EXPECT_TRUE(size >= 0 && reply.ParseFromArray(bytes.data(), static_cast<int>(size)));
    EXPECT_EQ(recv(fd.get(), bytes.data(), bytes.size(), 0), 0) << "and hangs up";
    return reply.error();
  }

  std::vector<core::RecordedDecision> Refusals() const {
    std::vector<core::RecordedDecision> refusals;
    for (const core::RecordedDecision& decision : world_->observer.counts().decisions) {
      if (decision.what == "connection") {
        refusals.push_back(decision);
      }
    }
    return refusals;
  }
  size_t Decided() const { return server_.admitted().size() + Refusals().size(); }

  std::string root_;
  log::Logger logger_{log::Options{}};
  door::RecordingServer server_;
  const SteadyClock clock_;
  door::Bulkhead bulkhead_{clock_};
  std::unique_ptr<core::World> world_;
  std::unique_ptr<SocketDirectory> workloads_;
  std::unique_ptr<SocketDirectory> operators_;
  std::unique_ptr<SocketDirectory> doors_;
  door::ConnectionLimits limits_;
  std::unique_ptr<FrontDoor> door_;
};

}  // namespace rnicd::transport
