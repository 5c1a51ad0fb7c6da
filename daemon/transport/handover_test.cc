#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <atomic>
#include <filesystem>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "daemon/transport/handover_fixture_test.h"

namespace rnicd::transport {
namespace {

constexpr int kNewcomers = 40;

// The inodes of all sockets below the folder.
std::map<std::string, ino_t> SocketsBelow(const std::string& folder) {
  std::map<std::string, ino_t> sockets;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    struct stat facts = {};
    if (stat(entry.path().c_str(), &facts) == 0 && S_ISSOCK(facts.st_mode)) {
      sockets[entry.path()] = facts.st_ino;
    }
  }
  return sockets;
}

TEST_F(HandoverTest, NewcomersWaitAndAreServedByTheHeir) {
  HandedDoor handed = old_->Give();
  std::vector<UniqueFd> waiting;
  for (int count = 0; count < kNewcomers; ++count) {
    waiting.push_back(ConnectToRpc());
  }
  waiting.push_back(ConnectTo(AdminSocket(), SOCK_STREAM));
  old_->door->Retire(7);
  ASSERT_TRUE(heir_->Start(std::move(handed)).ok());
  for (const UniqueFd& connection : waiting) {
    EXPECT_EQ(Answer(connection), kHeir);
  }
  EXPECT_TRUE(old_->server.admitted().empty());
}

TEST_F(HandoverTest, OpenConnectionsStayWithTheRetiredOne) {
  UniqueFd before = ConnectToRpc();
  EXPECT_EQ(Answer(before), kOld);
  TakeOver();
  old_->Tick();
  EXPECT_TRUE(Eventually([&] { return old_->door->connections() == 1; }));
  before.Reset(-1);
  EXPECT_TRUE(Eventually([&] { return old_->door->connections() == 0; }));
}

TEST_F(HandoverTest, NamesAndInodesStayWhenTheRetiredOneEnds) {
  const std::map<std::string, ino_t> before = SocketsBelow(root_);
  EXPECT_EQ(before.size(), 3u);
  TakeOver();
  old_.reset();
  heir_->Tick();
  EXPECT_EQ(SocketsBelow(root_), before);
  EXPECT_EQ(Answer(ConnectToRpc()), kHeir);
}

TEST_F(HandoverTest, OnlyTheHeirMakesASocketAgain) {
  TakeOver();
  std::filesystem::remove(RpcSocket());
  old_->Tick();
  EXPECT_FALSE(std::filesystem::exists(RpcSocket()));
  EXPECT_EQ(old_->door->trouble(), std::nullopt) << "it is not its trouble any more";
  heir_->Tick();
  EXPECT_EQ(Answer(ConnectToRpc()), kHeir);
}

TEST_F(HandoverTest, TheLocksAreNeverFree) {
  const auto is_held = [&] {
    return !SocketDirectory::Claim(root_ + "/w", 0755).ok() && !SocketDirectory::Claim(root_ + "/o", 0700).ok() &&
           !SocketDirectory::Claim(root_ + "/d", 0700).ok();
  };
  HandedDoor handed = old_->Give();
  EXPECT_TRUE(is_held());
  heir_->Adopt(handed);
  EXPECT_TRUE(is_held());
  old_.reset();
  EXPECT_TRUE(is_held());
  heir_.reset();
  EXPECT_TRUE(SocketDirectory::Claim(root_ + "/w", 0755).ok()) << "the lock goes with its last owner";
}

// Here an earlier daemon is another process, which has ended.
TEST_F(HandoverTest, ClientsSeeTheHeirBehindTheSocket) {
  HandedDoor handed = old_->Give();
  for (const HandedSocket& socket : handed.sockets) {
    const pid_t child = fork();
    if (child == 0) {
      _exit(listen(socket.listener.get(), 1));
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
  }
  ASSERT_TRUE(heir_->Start(std::move(handed)).ok());
  const UniqueFd connection = ConnectToRpc();
  EXPECT_EQ(Answer(connection), kHeir);
  ucred listener = {};
  socklen_t size = sizeof(listener);
  ASSERT_EQ(getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &listener, &size), 0);
  EXPECT_EQ(listener.pid, getpid());
}

TEST_F(HandoverTest, ANewModeOfTheSocketsHolds) {
  MakeHeir({.limits = {}, .socket_mode = 0660, .proc_folder = {}, .route = {}});
  TakeOver();
  EXPECT_EQ(std::filesystem::status(RpcSocket()).permissions(), std::filesystem::perms(0660));
}

TEST_F(HandoverTest, AfterAnAttemptItGoesOnAsBefore) {
  const std::map<std::string, ino_t> before = SocketsBelow(root_);
  for (int attempt = 0; attempt < 2; ++attempt) {
    const HandedDoor handed = old_->Give();
    const UniqueFd waits = ConnectToRpc();
    old_->door->Resume();
    EXPECT_EQ(Answer(waits), kOld);
  }
  old_->Tick();
  EXPECT_EQ(SocketsBelow(root_), before);
}

// The third socket that the heir is given is none.
TEST_F(HandoverTest, AnHeirThatCannotStartLeavesEverything) {
  const std::map<std::string, ino_t> before = SocketsBelow(root_);
  HandedDoor handed = old_->Give();
  ASSERT_EQ(handed.sockets.size(), 3u);
  const UniqueFd waits = ConnectToRpc();
  handed.sockets[1].listener = UniqueFd(eventfd(0, EFD_CLOEXEC));
  EXPECT_FALSE(heir_->Start(std::move(handed)).ok());
  heir_.reset();
  EXPECT_EQ(SocketsBelow(root_), before);
  old_->door->Resume();
  EXPECT_EQ(Answer(waits), kOld);
}

TEST_F(HandoverTest, OperatorsFindTheRetiredOneByItsNumberUntilItEnds) {
  TakeOver();
  EXPECT_EQ(Answer(ConnectTo(AdminSocket(), SOCK_STREAM)), kHeir);
  EXPECT_EQ(Answer(ConnectTo(RetiredAdminSocket(), SOCK_STREAM)), kOld);
  old_.reset();
  EXPECT_FALSE(std::filesystem::exists(RetiredAdminSocket()));
}

// The heir has made a socket anew, and ends as if it had been killed.
TEST_F(HandoverTest, ARetiredOneWhoseHeirIsGoneServesAgain) {
  TakeOver();
  std::filesystem::remove(RpcSocket());
  heir_->Tick();
  EXPECT_EQ(Answer(ConnectToRpc()), kHeir);
  (void)heir_->Give();
  heir_.reset();
  const UniqueFd operator_waits = ConnectTo(AdminSocket(), SOCK_STREAM);
  old_->door->Resume();
  EXPECT_EQ(Answer(operator_waits), kOld);
  EXPECT_EQ(Answer(ConnectToRpc()), kOld);
  EXPECT_FALSE(std::filesystem::exists(RetiredAdminSocket()));
}

// Both have the sockets that it has shut down.
TEST_F(HandoverTest, ARetiredOneWhoseHeirHasStoppedMakesTheSocketsAgain) {
  TakeOver();
  heir_.reset();
  EXPECT_FALSE(std::filesystem::exists(RpcSocket()));
  old_->door->Resume();
  EXPECT_EQ(Answer(ConnectToRpc()), kOld);
}

TEST_F(HandoverTest, DoorsOfGrantsGoOver) {
  const auto tenant = MakeDoor(*old_, "a");
  const std::string directory = old_->door->doors().DirectoryOf(tenant->grant());
  const std::map<std::string, ino_t> before = SocketsBelow(directory);
  const auto inherited = heir_->world.tenants.CreateGrant(
      {.name = "a", .renewal = core::GrantRenewal{.id = tenant->grant(), .digest = {}}, .door = true});
  ASSERT_TRUE(inherited.ok()) << inherited.status();
  HandedDoor handed = old_->Give();
  const UniqueFd waits = ConnectTo(directory + "/" + core::kRpcSocketName, SOCK_STREAM);
  old_->door->Retire(7);
  ASSERT_TRUE(heir_->Start(std::move(handed)).ok());
  EXPECT_EQ(Answer(waits), kHeir);
  EXPECT_EQ(heir_->server.admitted().front().caller.door, inherited->tenant);
  old_.reset();
  EXPECT_EQ(SocketsBelow(directory), before);
}

TEST_F(HandoverTest, TheDoorOfAGrantThatTheHeirDoesNotKnowIsClosed) {
  const auto tenant = MakeDoor(*old_, "a");
  const std::string directory = old_->door->doors().DirectoryOf(tenant->grant());
  HandedDoor handed = old_->Give();
  const UniqueFd waits = ConnectTo(directory + "/" + core::kRpcSocketName, SOCK_STREAM);
  old_->door->Retire(7);
  ASSERT_TRUE(heir_->Start(std::move(handed)).ok());
  EXPECT_EQ(Answer(waits), kNobody);
  EXPECT_FALSE(std::filesystem::exists(directory));
}

TEST_F(HandoverTest, ARetiredOneDisconnectsAnEndedGrantAndLeavesItsDoor) {
  const auto tenant = MakeDoor(*old_, "a");
  const std::string directory = old_->door->doors().DirectoryOf(tenant->grant());
  const UniqueFd connection = ConnectTo(directory + "/" + core::kRpcSocketName, SOCK_STREAM);
  EXPECT_EQ(Answer(connection), kOld);
  (void)old_->Give();
  old_->door->Retire(7);
  EXPECT_TRUE(old_->world.tenants.RevokeGrant(tenant->grant()).ok());
  old_->Tick();
  EXPECT_EQ(Answer(connection), kNobody);
  EXPECT_TRUE(std::filesystem::exists(directory));
  old_->door->Resume();
  old_->Tick();
  EXPECT_FALSE(std::filesystem::exists(directory));
}

TEST_F(HandoverTest, NoDoorIsMadeInTheMeantime) {
  (void)old_->Give();
  const auto grant = old_->world.tenants.CreateGrant({.name = "a", .door = true});
  core::Awaited<absl::Status> open;
  old_->door->doors().Open(grant->tenant, [&](const absl::Status& status) { open.Set(status); });
  EXPECT_THAT(open.Get().value_or(absl::OkStatus()), core::FailsWith(ErrorReason::DOOR_UNAVAILABLE));
  EXPECT_FALSE(std::filesystem::exists(old_->door->doors().DirectoryOf(grant->id)));
}

// One generation after another, each after some of the clients.
TEST_F(HandoverTest, InAStormOfClientsEachIsAnswered) {
  constexpr int kThreads = 4;
  constexpr int kConnects = 300;
  constexpr int kHandovers = 12;
  std::atomic<int> connected{0};
  std::atomic<int> answered{0};
  std::vector<std::thread> clients;
  for (int thread = 0; thread < kThreads; ++thread) {
    clients.emplace_back([&] {
      for (int connect = 0; connect < kConnects; ++connect) {
        answered.fetch_add(Answer(ConnectToRpc()) != kNobody ? 1 : 0);
        connected.fetch_add(1);
      }
    });
  }
  for (int handover = 0; handover < kHandovers; ++handover) {
    EXPECT_TRUE(Eventually([&] { return connected.load() >= handover * kThreads * kConnects / kHandovers; }));
    HandedDoor handed = old_->Give();
    EXPECT_TRUE(heir_->Start(std::move(handed)).ok());
    old_->door->Retire(7);
    old_ = std::exchange(heir_, std::make_unique<Generation>(kHeir, root_, logger_));
  }
  for (std::thread& client : clients) {
    client.join();
  }
  EXPECT_EQ(answered.load(), kThreads * kConnects);
}

}  // namespace
}  // namespace rnicd::transport
