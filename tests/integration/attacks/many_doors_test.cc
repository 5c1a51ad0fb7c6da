// Ten thousand doors of grants: made, used, revoked, expired, left behind by daemons that were killed, and renewed by
// the next one. At the end there is no file, no descriptor and no thread more than at the start.
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/integration/raw_call.h"
#include "tests/support/admin_client.h"
#include "tests/support/calls/raw_client.h"
#include "tests/support/process/raw_socket.h"
#include "tests/support/process/wait.h"

namespace rnicd::test {
namespace {

constexpr int kRounds = 20;
// An emulated machine would take too long for more, and so do sanitizers.
const int kDoorsOfARound = 500 / kSlowness;
// One in four times that a round's doors are made the daemon is killed, in the middle of making another.
constexpr int kRoundsOfADaemon = 4;
// Every fifth grant expires by itself, at once or when its door is in use.
constexpr int kExpiring = 5;
constexpr uint64_t kLifetimesMs[] = {1, 50};
// Every seventh door has clients.
constexpr int kUsed = 7;
constexpr int kRenewed = 3;

struct MadeDoor {
  uint64_t grant = 0;
  std::string directory;
  ino_t inode = 0;
  bool expires = false;
};

ino_t InodeOf(const std::string& path) {
  struct stat facts = {};
  return stat(path.c_str(), &facts) == 0 ? facts.st_ino : 0;
}

class ManyDoors : public testing::Test {
 protected:
  void Start(const std::shared_ptr<TempDir>& directory = nullptr) {
    auto started = DaemonProcess::Start({.flags = {"--log_level=error"}, .directory = directory});
    ASSERT_TRUE(started.ok()) << started.status();
    daemon_ = *std::move(started);
  }

  v1::CreateGrantRequest NextDoor() {
    v1::CreateGrantRequest request;
    request.set_name("door-" + std::to_string(++named_));
    request.set_door(true);
    return request;
  }

  // Nothing if the daemon does not make the door.
  static std::optional<MadeDoor> Make(RawClient& client, const v1::CreateGrantRequest& request) {
    const auto created = client.Call(&AdminStub::CreateGrant, request);
    if (!created.ok()) {
      return std::nullopt;
    }
    const std::string& directory = created.response.socket_dir();
    return MadeDoor{.grant = created.response.grant_id(),
                    .directory = directory,
                    .inode = InodeOf(directory),
                    .expires = request.lifetime_ms() > 0};
  }

  void MakeRound() {
    RawClient client(daemon_->admin_socket());
    for (int index = 0; index < kDoorsOfARound; ++index) {
      v1::CreateGrantRequest request = NextDoor();
      if (index % kExpiring == 0) {
        request.set_lifetime_ms(kLifetimesMs[index / kExpiring % 2]);
      }
      const std::optional<MadeDoor> door = Make(client, request);
      ASSERT_TRUE(door.has_value());
      doors_.push_back(*door);
      if (index % kUsed == 0) {
        Use(*door);
      }
    }
  }

  // A client with a session, and one on each socket that says nothing. They stay until their door goes; that of a grant
  // that expires may be gone already.
  void Use(const MadeDoor& door) {
    UniqueFd caller = ConnectUnix(door.directory + "/rpc.sock", SOCK_STREAM);
    const bool served = caller.valid() && CallOn(caller.get(), SessionStub::OpenSession.path);
    EXPECT_TRUE(served || door.expires);
    clients_.push_back(std::move(caller));
    clients_.push_back(ConnectUnix(door.directory + "/rpc.sock", SOCK_STREAM));
    clients_.push_back(ConnectUnix(door.directory + "/fd.sock", SOCK_SEQPACKET));
  }

  void ExpectClientsDisconnected() {
    for (const UniqueFd& client : clients_) {
      EXPECT_TRUE(!client.valid() || HangsUp(client.get()));
    }
    clients_.clear();
  }

  // Each door is gone when its grant's revocation returns.
  void RevokeAll() {
    RawClient client(daemon_->admin_socket());
    for (const MadeDoor& door : doors_) {
      const bool revoked = Revoke(client, door.grant);
      ASSERT_TRUE(revoked || door.expires) << daemon_->log();
      ASSERT_FALSE(std::filesystem::exists(door.directory)) << door.directory;
    }
    doors_.clear();
  }

  static bool Revoke(RawClient& client, uint64_t grant) {
    v1::RevokeGrantRequest request;
    request.set_grant_id(grant);
    return client.Call(&AdminStub::RevokeGrant, request).ok();
  }

  // Leaves the daemon's doors behind, and at most one that it was making.
  void KillWhileItMakesDoors() {
    std::vector<MadeDoor> more;
    std::thread maker([&] {
      RawClient client(daemon_->admin_socket());
      while (const std::optional<MadeDoor> door = Make(client, NextDoor())) {
        more.push_back(*door);
      }
    });
    const size_t known = AdminStatus(*daemon_).grants();
    EXPECT_TRUE(Eventually([&] { return AdminStatus(*daemon_).grants() > known; }));
    daemon_->KillHard();
    maker.join();
    doors_.insert(doors_.end(), more.begin(), more.end());
  }

  // As the device plugin does it: some of the grants are needed still, the others are revoked by their id.
  void RenewSome() {
    RawClient client(daemon_->admin_socket());
    std::vector<MadeDoor> renewed;
    for (size_t index = 0; index < doors_.size(); ++index) {
      const MadeDoor& door = doors_[index];
      if (index % kRenewed != 0 || door.expires) {
        ASSERT_FALSE(Revoke(client, door.grant));
        ASSERT_FALSE(std::filesystem::exists(door.directory)) << door.directory;
        continue;
      }
      v1::CreateGrantRequest request = NextDoor();
      request.mutable_renewal()->set_grant_id(door.grant);
      const std::optional<MadeDoor> again = Make(client, request);
      ASSERT_TRUE(again.has_value());
      ASSERT_EQ(again->directory, door.directory);
      ASSERT_EQ(again->inode, door.inode);
      renewed.push_back(*again);
      if (index % kUsed == 0) {
        Use(*again);
      }
    }
    doors_ = renewed;
  }

  // What the killed daemon was making: nobody was told its id, but it is the directory's name.
  void RevokeStrays() {
    RawClient client(daemon_->admin_socket());
    std::set<std::string> known;
    std::ranges::for_each(doors_, [&](const MadeDoor& door) { known.insert(door.directory); });
    size_t strays = 0;
    for (const std::string& directory : DirectoriesLeft()) {
      if (!known.contains(directory)) {
        const std::string name = std::filesystem::path(directory).filename();
        uint64_t grant = 0;
        std::from_chars(name.data(), name.data() + name.size(), grant, 16);
        EXPECT_FALSE(Revoke(client, grant));
        ++strays;
      }
    }
    EXPECT_LE(strays, 1u);
  }

  std::vector<std::string> DirectoriesLeft() const {
    std::vector<std::string> left;
    for (const auto& entry : std::filesystem::directory_iterator(daemon_->socket_dir() + "-doors")) {
      if (entry.is_directory()) {
        left.push_back(entry.path());
      }
    }
    return left;
  }

  std::unique_ptr<DaemonProcess> daemon_;
  // With or without a door now.
  std::vector<MadeDoor> doors_;
  std::vector<UniqueFd> clients_;
  int named_ = 0;
};

TEST_F(ManyDoors, LeaveNothingBehind) {
  Start();
  ASSERT_FALSE(HasFatalFailure());
  const IdleState idle = MeasureIdle(*daemon_);
  for (int round = 1; round <= kRounds && !HasFailure(); ++round) {
    MakeRound();
    if (round % kRoundsOfADaemon == 1) {
      KillWhileItMakesDoors();
      ExpectClientsDisconnected();
      Start(daemon_->directory());
      ASSERT_FALSE(HasFatalFailure());
      RenewSome();
      RevokeStrays();
    }
    RevokeAll();
    ExpectClientsDisconnected();
    EXPECT_TRUE(Eventually([&] { return AdminStatus(*daemon_).grants() == 0 && DirectoriesLeft().empty(); }));
    ExpectNothingHeld(*daemon_, idle);
  }
  // Beside its lock, nothing.
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(daemon_->socket_dir() + "-doors"),
                          std::filesystem::directory_iterator()),
            1);
}

}  // namespace
}  // namespace rnicd::test
