#include "daemon/transport/grant_doors.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "daemon/transport/front_door_fixture_test.h"

namespace rnicd::transport {
namespace {

constexpr GrantId kEarlier{0x17};
// Connections, more than are accepted at once, and fewer than the kernel's queue holds.
constexpr int kMoreThanAtOnce = 600;

ino_t InodeOf(const std::string& path) {
  struct stat facts = {};
  return stat(path.c_str(), &facts) == 0 ? facts.st_ino : 0;
}

size_t Descriptors() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    ++count;
  }
  return count;
}

class GrantDoorsTest : public FrontDoorTest {
 protected:
  GrantDoorsTest() { BecomeProcessOf(InPod(kPod)); }

  absl::StatusOr<std::shared_ptr<core::Tenant>> TryOpenDoor(const core::GrantTerms& terms) {
    const auto grant = world_->tenants.CreateGrant(terms);
    EXPECT_TRUE(grant.ok()) << grant.status();
    // As text, because a status that is awaited loses the detail.
    core::Awaited<std::string> failure;
    door_->doors().Open(grant->tenant, [&](const absl::Status& status) { failure.Set(std::string(status.message())); });
    const std::string text = failure.Get().value_or("never answered");
    return text.empty() ? absl::StatusOr<std::shared_ptr<core::Tenant>>(grant->tenant) : absl::UnavailableError(text);
  }
  std::shared_ptr<core::Tenant> OpenDoor(const std::string& name, std::chrono::milliseconds lifetime = {}) {
    const auto tenant = TryOpenDoor({.name = name, .lifetime = lifetime, .door = true});
    EXPECT_TRUE(tenant.ok()) << tenant.status();
    return tenant.value_or(nullptr);
  }
  absl::StatusOr<std::shared_ptr<core::Tenant>> Renew(GrantId id) {
    return TryOpenDoor({.name = "renewed", .renewal = core::GrantRenewal{.id = id}, .door = true});
  }
  void Close(GrantId grant) {
    core::Awaited<bool> closed;
    door_->doors().Close(grant, [&] { closed.Set(true); });
    EXPECT_TRUE(closed.Get().has_value());
  }
  void Revoke(GrantId grant) {
    EXPECT_TRUE(world_->tenants.RevokeGrant(grant).ok());
    Close(grant);
  }
  std::string DirectoryOf(const core::Tenant& tenant) { return door_->doors().DirectoryOf(tenant.grant()); }
  UniqueFd ConnectThrough(const core::Tenant& tenant, const char* name = core::kRpcSocketName, int type = SOCK_STREAM) {
    return ConnectTo(DirectoryOf(tenant) + "/" + name, type);
  }
  void Restart() {
    door_->Stop();
    StartDoor();
  }
  static bool HasEnded(const UniqueFd& connection) {
    char byte = 0;
    return recv(connection.get(), &byte, 1, 0) == 0;
  }
};

TEST_F(GrantDoorsTest, WhoComesThroughADoorIsAdmittedAsItsGrant) {
  Open(0);
  const auto tenant = OpenDoor("a");
  UniqueFd connection = ConnectThrough(*tenant);
  ASSERT_TRUE(Eventually([&] { return server_.admitted().size() == 1; }));
  const core::Caller caller = server_.admitted().front().caller;
  EXPECT_EQ(caller.door, tenant);
  EXPECT_EQ(caller.container.pod_uid, kPod) << "who it is still comes from the kernel";
  EXPECT_EQ(*world_->tenants.TenantOf(caller, ""), tenant);
  EXPECT_EQ(tenant->door().connections(), 1u);
  connection.Reset(-1);
  EXPECT_TRUE(Eventually([&] { return tenant->door().connections() == 0; }));
}

TEST_F(GrantDoorsTest, ADoorHasAnFdSocketOfItsOwn) {
  Open(0, {}, {.per_second = 1, .burst = 1});
  const auto tenant = OpenDoor("a");
  const UniqueFd first = ConnectThrough(*tenant);
  const UniqueFd second = ConnectThrough(*tenant, core::kFdSocketName, SOCK_SEQPACKET);
  std::array<char, 4096> bytes;
  v1::FdReply reply;
  const ssize_t size = recv(second.get(), bytes.data(), bytes.size(), 0);
  ASSERT_TRUE(size > 0 && reply.ParseFromArray(bytes.data(), static_cast<int>(size)));
  EXPECT_EQ(reply.error().reason(), v1::ERROR_REASON_RATE_LIMITED);
  EXPECT_TRUE(Eventually([&] { return tenant->door().refused() == 1; }));
  ASSERT_EQ(Refusals().size(), 1u);
  EXPECT_EQ(Refusals().front().tenant, "grant/a");
}

// The pod has used up what it may at the shared sockets, and another pod what it may at its door.
TEST_F(GrantDoorsTest, ConnectionsOfADoorCountForItAlone) {
  Open(1);
  const auto ours = OpenDoor("a");
  const auto theirs = OpenDoor("b");
  const UniqueFd shared = ConnectFrom(InPod(kPod));
  const UniqueFd neighbour = ConnectThrough(*theirs);
  const UniqueFd connection = ConnectThrough(*ours);
  EXPECT_TRUE(Eventually([&] { return server_.admitted().size() == 3; }));
  const UniqueFd above = ConnectThrough(*ours);
  EXPECT_TRUE(HasEnded(above));
  EXPECT_EQ(ours->door().refused(), 1u);
  EXPECT_EQ(theirs->door().refused(), 0u);
}

TEST_F(GrantDoorsTest, AllConnectionsOfTheSharedSocketsTakeNoneFromADoor) {
  Open(0, {}, {}, 1);
  const UniqueFd shared = ConnectFrom(InPod(kPod));
  const UniqueFd refused = ConnectFrom(InPod(kOtherPod));
  ASSERT_EQ(Refusals().size(), 1u);
  EXPECT_EQ(Refusals().front().note, core::kRefusedLimit);
  const auto tenant = OpenDoor("a");
  const UniqueFd connection = ConnectThrough(*tenant);
  EXPECT_TRUE(Eventually([&] { return tenant->door().connections() == 1; }));
}

TEST_F(GrantDoorsTest, ARevokedGrantLeavesNoDirectoryConnectionOrDescriptor) {
  Open(0);
  const size_t descriptors = Descriptors();
  const auto other = OpenDoor("other");
  const UniqueFd of_other = ConnectThrough(*other);
  EXPECT_TRUE(Eventually([&] { return server_.admitted().size() == 1; }));
  const auto tenant = OpenDoor("a");
  const UniqueFd connection = ConnectThrough(*tenant);
  EXPECT_TRUE(Eventually([&] { return server_.admitted().size() == 2; }));
  Revoke(tenant->grant());
  EXPECT_TRUE(HasEnded(connection));
  EXPECT_FALSE(std::filesystem::exists(DirectoryOf(*tenant)));
  EXPECT_TRUE(Eventually([&] { return door_->connections() == 1; }));
  // Two listeners, the sockets and the process of the other connection; and of this one the client's socket, and the
  // process, which the server has recorded.
  EXPECT_TRUE(Eventually([&] { return Descriptors() == descriptors + 2 + 3 + 2; })) << Descriptors() - descriptors;
}

TEST_F(GrantDoorsTest, AnExpiredGrantTakesItsDoorWithIt) {
  Open(0);
  const auto tenant = OpenDoor("a", std::chrono::seconds(60));
  const UniqueFd connection = ConnectThrough(*tenant);
  EXPECT_TRUE(Eventually([&] { return server_.admitted().size() == 1; }));
  world_->clock.Advance(std::chrono::seconds(61));
  EXPECT_TRUE(HasEnded(connection));
  EXPECT_FALSE(std::filesystem::exists(DirectoryOf(*tenant)));
}

TEST_F(GrantDoorsTest, ADoorWhoseGrantLivesIsNotClosed) {
  Open(0);
  const auto tenant = OpenDoor("a");
  Close(tenant->grant());
  const UniqueFd connection = ConnectThrough(*tenant);
  EXPECT_TRUE(Eventually([&] { return tenant->door().connections() == 1; }));
}

// A container has mounted the directory, and would keep a deleted one.
TEST_F(GrantDoorsTest, TheDirectoryWaitsForTheRenewalOfItsGrant) {
  Open(0);
  const auto tenant = OpenDoor("a");
  const std::string directory = DirectoryOf(*tenant);
  const ino_t inode = InodeOf(directory);
  Restart();
  EXPECT_TRUE(std::filesystem::is_empty(directory)) << "nobody may connect to a daemon that has ended";
  EXPECT_TRUE(world_->tenants.RevokeGrant(tenant->grant()).ok()) << "another daemon knows no grant";
  const auto renewed = Renew(tenant->grant());
  ASSERT_TRUE(renewed.ok()) << renewed.status();
  EXPECT_EQ(InodeOf(directory), inode);
  const UniqueFd connection = ConnectThrough(**renewed);
  EXPECT_TRUE(Eventually([&] { return (*renewed)->door().connections() == 1; }));
}

class GrantDoorLeftovers : public GrantDoorsTest {
 protected:
  // What a daemon leaves that was killed in the middle of a change.
  void LeaveBehind(GrantId grant) {
    const std::string directory = door_->doors().DirectoryOf(grant);
    std::filesystem::create_directory(directory);
    for (const char* const name : {"rpc.sock", "rpc.sock.new", "fd.sock"}) {
      const UniqueFd socket_fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
      sockaddr_un address = {};
      address.sun_family = AF_UNIX;
      (directory + "/" + name).copy(address.sun_path, sizeof(address.sun_path) - 1);
      ASSERT_EQ(bind(socket_fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    }
  }
};

TEST_F(GrantDoorLeftovers, AreRemovedWithTheirGrant) {
  Open(0);
  LeaveBehind(kEarlier);
  Close(kEarlier);
  EXPECT_FALSE(std::filesystem::exists(door_->doors().DirectoryOf(kEarlier)));
}

TEST_F(GrantDoorLeftovers, AreReplacedByARenewal) {
  Open(0);
  LeaveBehind(kEarlier);
  const auto tenant = Renew(kEarlier);
  ASSERT_TRUE(tenant.ok()) << tenant.status();
  const UniqueFd connection = ConnectThrough(**tenant);
  EXPECT_TRUE(Eventually([&] { return (*tenant)->door().connections() == 1; }));
}

TEST_F(GrantDoorLeftovers, AreRemovedAfterADayButNothingElseIs) {
  Open(0);
  LeaveBehind(kEarlier);
  const std::string foreign = root_ + "/d/not-a-door";
  std::filesystem::create_directory(foreign);
  const std::string used = door_->doors().DirectoryOf(GrantId{0x18});
  std::filesystem::create_directory(used);
  std::ofstream(used + "/rpc.sock") << "not a socket";
  const auto tenant = OpenDoor("a");
  world_->clock.Advance(std::chrono::hours(24));
  EXPECT_TRUE(Eventually([&] { return !std::filesystem::exists(door_->doors().DirectoryOf(kEarlier)); }));
  EXPECT_TRUE(std::filesystem::exists(foreign));
  EXPECT_TRUE(std::filesystem::exists(used + "/rpc.sock"));
  const UniqueFd connection = ConnectThrough(*tenant);
  EXPECT_TRUE(Eventually([&] { return tenant->door().connections() == 1; }));
}

TEST_F(GrantDoorsTest, ARemovedSocketIsMadeAgain) {
  Open(0);
  const auto tenant = OpenDoor("a");
  const std::string directory = DirectoryOf(*tenant);
  int count = 0;
  for (const std::string& removed : {directory + "/rpc.sock", directory, root_ + "/d"}) {
    // At once, because the daemon makes again what it misses.
    std::filesystem::rename(removed, root_ + "/removed-" + std::to_string(++count));
    EXPECT_TRUE(Eventually([&] {
      world_->clock.Advance(std::chrono::seconds(1));
      return std::filesystem::exists(directory + "/rpc.sock");
    })) << removed;
    const uint64_t before = tenant->door().connections();
    const UniqueFd connection = ConnectThrough(*tenant);
    EXPECT_TRUE(Eventually([&] { return tenant->door().connections() == before + 1; }));
  }
}

TEST_F(GrantDoorsTest, ADoorThatCannotBeMadeSaysWhyAndLeavesNothing) {
  Open(0);
  const size_t descriptors = Descriptors();
  std::ofstream(door_->doors().DirectoryOf(kEarlier)) << "in the way";
  const auto tenant = Renew(kEarlier);
  EXPECT_NE(tenant.status().message().find(door_->doors().DirectoryOf(kEarlier)), std::string::npos) << tenant.status();
  EXPECT_EQ(Descriptors(), descriptors);
}

TEST_F(GrantDoorsTest, ADirectoryThatCannotBeKeptIsATrouble) {
  Open(0);
  std::filesystem::permissions(root_ + "/d", std::filesystem::perms::all);
  std::filesystem::remove(root_ + "/d/lock");
  EXPECT_TRUE(Eventually([&] {
    world_->clock.Advance(std::chrono::seconds(1));
    return door_->trouble().value_or("").find(root_ + "/d") != std::string::npos;
  }));
}

// They connect and leave. The clock stands still, so that what a door may cost the others is used up.
TEST_F(GrantDoorsTest, AStormAtADoorIsLeftAloneAndItsNeighbourServed) {
  Open(0);
  const auto stormy = OpenDoor("stormy");
  const auto quiet = OpenDoor("quiet");
  for (int connection = 0; connection < kMoreThanAtOnce; ++connection) {
    ConnectThrough(*stormy).Reset(-1);
  }
  EXPECT_TRUE(Eventually([&] { return stormy->door().storms() == 1; }));
  const UniqueFd waits = ConnectThrough(*stormy);
  const UniqueFd neighbour = ConnectThrough(*quiet);
  EXPECT_TRUE(Eventually([&] { return quiet->door().connections() == 1; }));
  EXPECT_EQ(stormy->door().connections(), 0u);
  EXPECT_TRUE(Eventually([&] {
    world_->clock.Advance(std::chrono::milliseconds(4));
    return stormy->door().connections() == 1;
  }));
  EXPECT_EQ(stormy->door().storms(), 1u) << "it was one storm";
  EXPECT_EQ(quiet->door().storms(), 0u);
}

}  // namespace
}  // namespace rnicd::transport
