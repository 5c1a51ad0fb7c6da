// Doors: sockets of a grant's own, by which a process is admitted as the grant, without a secret.
#include <sys/stat.h>

#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "base/status.h"
#include "client/cpp/client.h"
#include "client/cpp/memory.h"
#include "client/cpp/memory_region.h"
#include "tests/support/admin_client.h"
#include "tests/support/calls/expect.h"
#include "tests/support/calls/raw_client.h"
#include "tests/support/process/child_process.h"
#include "tests/support/process/wait.h"
#include "tests/support/shared_daemon.h"

namespace rnicd::test {
namespace {

constexpr uint64_t kPageBytes = 4096;
constexpr char kSomePod[] = "0d9e1b5c-90a4-4a3c-8f0e-6d7d5b3f2c11";

v1::CreateGrantRequest DoorNamed(const std::string& name) {
  v1::CreateGrantRequest request;
  request.set_name(name);
  request.set_door(true);
  return request;
}

absl::StatusOr<Client> ConnectAt(const std::string& socket_dir, std::promise<std::string>* end = nullptr) {
  ClientOptions options{.socket_dir = socket_dir, .label = "doors"};
  if (end != nullptr) {
    options.on_session_ended = [end](const absl::Status& why) { end->set_value(ErrorInfoOf(why).field); };
  }
  return Client::Connect(std::move(options));
}

ino_t InodeOf(const std::string& path) {
  struct stat facts = {};
  return stat(path.c_str(), &facts) == 0 ? facts.st_ino : 0;
}

class Doors : public DaemonTest {
 protected:
  v1::CreateGrantResponse Make(const v1::CreateGrantRequest& request) {
    const auto created = CreateGrant(daemon(), request);
    ExpectOk(created);
    EXPECT_EQ(created.response.secret(), "");
    return created.response;
  }
  v1::GrantInfo Listed(uint64_t id) {
    for (const v1::GrantInfo& grant : AdminGrants(daemon())) {
      if (grant.grant_id() == id) {
        return grant;
      }
    }
    return {};
  }
};

// The descriptor of the memory comes through the door's fd.sock.
TEST_F(Doors, ItsUserIsTheGrantsTenantWithoutASecret) {
  v1::CreateGrantRequest request = DoorNamed("own");
  request.mutable_limits()->set_memory_objects(1);
  const v1::CreateGrantResponse door = Make(request);
  {
    const auto client = ConnectAt(door.socket_dir());
    ASSERT_TRUE(client.ok()) << client.status();
    const auto memory = Memory::Allocate(*client, {.size = kPageBytes});
    ASSERT_TRUE(memory.ok()) << memory.status();
    const auto region = MemoryRegion::Register(*memory, 0);
    EXPECT_TRUE(region.ok()) << region.status();
    EXPECT_TRUE(
        FailedWith(Memory::Allocate(*client, {.size = kPageBytes}).status(), ErrorReason::QUOTA_MEMORY_OBJECTS));
    const v1::GrantInfo listed = Listed(door.grant_id());
    EXPECT_EQ(listed.sessions(), 1u);
    EXPECT_EQ(listed.door().socket_dir(), door.socket_dir());
    EXPECT_EQ(listed.door().connections(), 1u);
  }
  EXPECT_TRUE(Eventually([&] { return Listed(door.grant_id()).door().connections() == 0; }));
  ExpectOk(RevokeGrant(daemon(), door.grant_id()));
}

TEST_F(Doors, RevocationLeavesNothingWhenItIsAnswered) {
  const v1::CreateGrantResponse door = Make(DoorNamed("gone"));
  std::promise<std::string> end;
  const auto client = ConnectAt(door.socket_dir(), &end);
  ASSERT_TRUE(client.ok()) << client.status();
  const auto revoked = RevokeGrant(daemon(), door.grant_id());
  ExpectOk(revoked);
  EXPECT_EQ(revoked.response.sessions_ended(), 1u);
  EXPECT_FALSE(std::filesystem::exists(door.socket_dir()));
  EXPECT_EQ(end.get_future().get(), "grant_revoked") << "the connection ends after it was told";
  EXPECT_FALSE(ConnectAt(door.socket_dir()).ok());
}

TEST_F(Doors, ASecretIsRefusedThere) {
  const v1::CreateGrantResponse door = Make(DoorNamed("door"));
  v1::CreateGrantRequest with_secret;
  with_secret.set_name("secret");
  const auto other = CreateGrant(daemon(), with_secret);
  ExpectOk(other);
  RawClient client(door.socket_dir() + "/rpc.sock");
  v1::OpenSessionRequest open;
  open.set_grant(other.response.secret());
  ExpectRefused(client.Call(&SessionStub::OpenSession, open), ErrorReason::GRANT_REFUSED, "grant");
  ExpectOk(client.Call(&SessionStub::OpenSession, {}));
  ExpectOk(RevokeGrant(daemon(), door.grant_id()));
  ExpectOk(RevokeGrant(daemon(), other.response.grant_id()));
}

// This process is in no pod.
TEST_F(Doors, ADoorThatIsBoundToAPodDemandsThePod) {
  v1::CreateGrantRequest request = DoorNamed("bound");
  request.set_pod_uid(kSomePod);
  const v1::CreateGrantResponse door = Make(request);
  RawClient client(door.socket_dir() + "/rpc.sock");
  ExpectRefused(client.Call(&SessionStub::OpenSession, {}), ErrorReason::GRANT_REFUSED, "");
  ExpectOk(RevokeGrant(daemon(), door.grant_id()));
}

// The other user knows its path.
TEST_F(Doors, NobodyFindsTheDoorOfAnotherByItsPath) {
  const v1::CreateGrantResponse door = Make(DoorNamed("hidden"));
  const std::filesystem::path directory = door.socket_dir();
  EXPECT_EQ(std::filesystem::status(directory.parent_path()).permissions(), std::filesystem::perms::owner_all);
  const auto looks =
      ChildProcess::Start({.command = {"/usr/bin/test", "-S", directory / "rpc.sock"}, .uid = OtherUid()});
  ASSERT_TRUE(looks.ok()) << looks.status();
  const auto end = (*looks)->WaitForEnd();
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->exit_code == 0, !TwoUids());
  ExpectOk(RevokeGrant(daemon(), door.grant_id()));
}

// A container has mounted the directory: it must be the same one.
TEST(DoorRenewal, TheDirectoryIsTheSameForTheNextDaemonHoweverTheLastOneEnded) {
  auto daemon = DaemonProcess::Start();
  ASSERT_TRUE(daemon.ok()) << daemon.status();
  const std::shared_ptr<TempDir> directory = (*daemon)->directory();
  v1::CreateGrantRequest request = DoorNamed("job");
  const auto created = CreateGrant(**daemon, request);
  ExpectOk(created);
  const std::string door = created.response.socket_dir();
  const ino_t inode = InodeOf(door);
  request.mutable_renewal()->set_grant_id(created.response.grant_id());
  for (const bool killed : {true, false}) {
    if (killed) {
      (*daemon)->KillHard();
    } else {
      EXPECT_TRUE((*daemon)->Stop().ok());
    }
    daemon = DaemonProcess::Start({.directory = directory});
    ASSERT_TRUE(daemon.ok()) << daemon.status();
    EXPECT_FALSE(ConnectAt(door).ok());
    const auto renewed = CreateGrant(**daemon, request);
    ExpectOk(renewed);
    EXPECT_EQ(renewed.response.socket_dir(), door);
    EXPECT_EQ(InodeOf(door), inode);
    const auto client = ConnectAt(door);
    EXPECT_TRUE(client.ok()) << client.status();
  }
  // One whose grant was never renewed.
  (*daemon)->KillHard();
  daemon = DaemonProcess::Start({.directory = directory});
  ASSERT_TRUE(daemon.ok()) << daemon.status();
  ExpectRefused(RevokeGrant(**daemon, created.response.grant_id()), ErrorReason::GRANT_NOT_FOUND, "grant_id");
  EXPECT_FALSE(std::filesystem::exists(door));
}

}  // namespace
}  // namespace rnicd::test
