#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "daemon/transport/front_door_fixture_test.h"

namespace rnicd::transport {

// Reads what a client has sent before, and answers with the name of its generation.
class AnsweringServer final : public door::ConnectionServer {
 public:
  explicit AnsweringServer(char name) : name_(name) {}

  std::unique_ptr<door::ServedConnection> Serve(door::Admitted admitted) override {
    std::string bytes(64, '\0');
    const ssize_t size = recv(admitted.socket->get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    bytes.resize(size > 0 ? static_cast<size_t>(size) : 0);
    {
      MutexLock lock(mutex_);
      read_.push_back(std::move(bytes));
    }
    const std::shared_ptr<const UniqueSocket> socket = admitted.socket;
    std::unique_ptr<door::ServedConnection> served = recording_.Serve(std::move(admitted));
    EXPECT_EQ(send(socket->get(), &name_, 1, MSG_NOSIGNAL), 1);
    return served;
  }
  std::vector<std::string> read() const {
    MutexLock lock(mutex_);
    return read_;
  }
  std::vector<door::Admitted> admitted() const { return recording_.admitted(); }

 private:
  const char name_;
  door::RecordingServer recording_;
  mutable Mutex mutex_;
  std::vector<std::string> read_ RNICD_GUARDED_BY(mutex_);
};

// A daemon with all that it has of its own.
struct Generation {
  Generation(char name, const std::string& its_root, const log::Logger& logger, FrontDoorOptions options = {})
      : root(its_root), server(name) {
    options.proc_folder = root + "/proc";
    door = std::make_unique<FrontDoor>(
        options,
        door::Services{
            .node = world.node, .registry = world.registry, .logger = logger, .bulkhead = bulkhead, .server = server});
  }
  ~Generation() { door->Stop(); }

  absl::Status Start() {
    workloads = std::make_unique<SocketDirectory>(*SocketDirectory::Claim(root + "/w", 0755));
    operators = std::make_unique<SocketDirectory>(*SocketDirectory::Claim(root + "/o", 0700));
    doors = std::make_unique<SocketDirectory>(*SocketDirectory::Claim(root + "/d", 0700));
    return door->Start({.workloads = *workloads, .operators = *operators, .doors = *doors});
  }
  void Adopt(HandedDoor& handed) {
    workloads =
        std::make_unique<SocketDirectory>(*SocketDirectory::Adopt(root + "/w", 0755, std::move(handed.workloads_lock)));
    operators =
        std::make_unique<SocketDirectory>(*SocketDirectory::Adopt(root + "/o", 0700, std::move(handed.operators_lock)));
    doors = std::make_unique<SocketDirectory>(*SocketDirectory::Adopt(root + "/d", 0700, std::move(handed.doors_lock)));
  }
  absl::Status Start(HandedDoor handed) {
    Adopt(handed);
    return door->Start({.workloads = *workloads, .operators = *operators, .doors = *doors}, std::move(handed));
  }
  HandedDoor Give() const {
    absl::StatusOr<HandedDoor> handed = door->Give();
    EXPECT_TRUE(handed.ok()) << handed.status();
    return *std::move(handed);
  }
  // Returns when the periodic work was done once more.
  void Tick() {
    world.clock.Advance(std::chrono::seconds(1));
    for (int round = 0; round < 2; ++round) {
      core::Awaited<bool> ran;
      door->Post(FrontDoor::Thread::kWatcher, [&] { ran.Set(true); });
      EXPECT_TRUE(ran.Get().has_value());
    }
  }

  const std::string root;
  core::World world;
  AnsweringServer server;
  const SteadyClock steady;
  door::Bulkhead bulkhead{steady};
  std::unique_ptr<SocketDirectory> workloads;
  std::unique_ptr<SocketDirectory> operators;
  std::unique_ptr<SocketDirectory> doors;
  std::unique_ptr<FrontDoor> door;
};

constexpr char kOld = 'o';
constexpr char kHeir = 'h';
// Not a name: the connection was closed without an answer.
constexpr char kNobody = '\0';

// Two generations, of which the older one serves.
class HandoverTest : public FrontDoorTest {
 protected:
  HandoverTest() : old_(std::make_unique<Generation>(kOld, root_, logger_)) {
    BecomeProcessOf(InPod(kPod));
    EXPECT_TRUE(old_->Start().ok());
    MakeHeir({});
  }
  ~HandoverTest() override {
    heir_.reset();
    old_.reset();
  }

  void MakeHeir(const FrontDoorOptions& options) {
    heir_ = std::make_unique<Generation>(kHeir, root_, logger_, options);
  }
  // The heir serves, and the old one is retired as the seventh.
  void TakeOver() {
    HandedDoor handed = old_->Give();
    old_->door->Retire(7);
    EXPECT_TRUE(heir_->Start(std::move(handed)).ok());
  }

  std::string RpcSocket() const { return root_ + "/w/" + core::kRpcSocketName; }
  std::string FdSocket() const { return root_ + "/w/" + core::kFdSocketName; }
  std::string AdminSocket() const { return root_ + "/o/" + core::kAdminSocketName; }
  std::string RetiredAdminSocket() const { return root_ + "/o/admin-7.sock"; }
  UniqueFd ConnectToRpc() const { return ConnectTo(RpcSocket(), SOCK_STREAM); }
  // The name of the generation that serves the connection.
  static char Answer(const UniqueFd& connection) {
    char name = kNobody;
    return recv(connection.get(), &name, 1, 0) == 1 ? name : kNobody;
  }

  static std::shared_ptr<core::Tenant> MakeDoor(Generation& generation, const std::string& name) {
    const auto grant = generation.world.tenants.CreateGrant({.name = name, .door = true});
    core::Awaited<bool> open;
    generation.door->doors().Open(grant->tenant, [&](const absl::Status& status) { open.Set(status.ok()); });
    EXPECT_EQ(open.Get(), true);
    return grant->tenant;
  }

  std::unique_ptr<Generation> old_;
  std::unique_ptr<Generation> heir_;
};

}  // namespace rnicd::transport
