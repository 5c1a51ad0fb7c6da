#include "daemon/transport/front_door.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "daemon/transport/front_door_fixture_test.h"

namespace rnicd::transport {
namespace {

TEST_F(FrontDoorTest, EachOfItsThreadsRunsTasksBesideTheOthersThatAreHeld) {
  using Thread = FrontDoor::Thread;
  Open(0);
  constexpr Thread kAll[] = {Thread::kWorkloads, Thread::kOperators, Thread::kDoors, Thread::kWatcher};
  for (const Thread held : kAll) {
    Barrier barrier;
    door_->Post(held, [&] { barrier.Pass(); });
    for (const Thread other : kAll) {
      if (other != held) {
        core::Awaited<bool> ran;
        door_->Post(other, [&] { ran.Set(true); });
        EXPECT_TRUE(ran.Get().has_value());
      }
    }
    core::Awaited<bool> behind;
    door_->Post(held, [&] { behind.Set(true); });
    EXPECT_EQ(behind.times(), 0) << "a thread that is held does not answer";
    barrier.Open();
    EXPECT_TRUE(behind.Get().has_value());
  }
}

TEST_F(FrontDoorTest, TheLimitOnConnectionsIsForEachPodContainerAndUid) {
  Open(1);
  std::vector<UniqueFd> connections;
  const std::vector<std::string> owners = {InPod(kPod), InPod(kOtherPod), "/docker/" + kId, "/docker/" + kOtherId,
                                           "/system.slice/sshd.service"};
  for (const std::string& owner : owners) {
    connections.push_back(ConnectFrom(owner));
    EXPECT_TRUE(Refusals().empty()) << owner;
  }
  // Another container of the same pod counts as the same; so does another service of the same uid.
  const std::vector<std::string> again = {InPod(kPod, kOtherId), "/docker/" + kId, "/system.slice/cron.service"};
  for (const std::string& owner : again) {
    const size_t before = Refusals().size();
    world_->clock.Advance(std::chrono::seconds(1));
    const UniqueFd refused = ConnectFrom(owner);
    ASSERT_EQ(Refusals().size(), before + 1) << owner;
    EXPECT_EQ(Refusals().back().note, core::kRefusedUidLimit);
    EXPECT_TRUE(Refusals().back().process.has_value());
    EXPECT_TRUE(Refusals().back().refused.has_value());
  }
  EXPECT_EQ(server_.admitted().size(), owners.size());
}

TEST_F(FrontDoorTest, AConnectionThatIsClosedMakesRoomForItsPod) {
  Open(1);
  UniqueFd first = ConnectFrom(InPod(kPod));
  first.Reset(-1);
  EXPECT_TRUE(Eventually([&] { return door_->connections() == 0; }));
  const UniqueFd second = ConnectFrom(InPod(kPod));
  EXPECT_EQ(server_.admitted().size(), 2U);
}

TEST_F(FrontDoorTest, AProcessThatWasRefusedIsTurnedAwayUnseenForAMoment) {
  Open(1);
  const UniqueFd first = ConnectFrom(InPod(kPod));
  const UniqueFd refused = ConnectFrom(InPod(kPod));
  ASSERT_EQ(Refusals().size(), 1U);
  const UniqueFd turned_away = Connect();
  char byte = 0;
  EXPECT_EQ(recv(turned_away.get(), &byte, 1, 0), 0);
  EXPECT_EQ(Refusals().size(), 1U) << "a storm of refused connections is not a storm of decisions";
  world_->clock.Advance(door::ConnectBackoff::kFirst);
  const UniqueFd refused_again = ConnectFrom(InPod(kPod));
  EXPECT_EQ(Refusals().back().note, core::kRefusedUidLimit);
}

TEST_F(FrontDoorTest, AnOwnerThatConnectsTooFastWaitsAlone) {
  Open(0, {}, {.per_second = 1, .burst = 2});
  const UniqueFd first = ConnectFrom(InPod(kPod));
  const UniqueFd second = ConnectFrom(InPod(kPod));
  EXPECT_TRUE(Refusals().empty());
  const UniqueFd third = ConnectFrom(InPod(kPod));
  ASSERT_EQ(Refusals().size(), 1U);
  EXPECT_EQ(Refusals().back().note, core::kRefusedRate);
  world_->clock.Advance(door::ConnectBackoff::kFirst);
  const UniqueFd other = ConnectFrom(InPod(kOtherPod));
  world_->clock.Advance(std::chrono::seconds(1));
  const UniqueFd fourth = ConnectFrom(InPod(kPod));
  EXPECT_EQ(Refusals().size(), 1U);
}

// Nothing is sent before the reply: its client can wait for it as long as it likes.
TEST_F(FrontDoorTest, OnTheFdSocketARefusalNamesTheTimeToWait) {
  Open(0, {}, {.per_second = 1, .burst = 1});
  const UniqueFd first = ConnectFrom(InPod(kPod));
  const v1::ErrorDetail too_fast = RefusalOnFdSocket();
  EXPECT_EQ(too_fast.reason(), v1::ERROR_REASON_RATE_LIMITED);
  EXPECT_EQ(too_fast.limit(), 1u);
  EXPECT_EQ(too_fast.retry_after_ms(), door::ConnectBackoff::kFirst.count());
  EXPECT_NE(too_fast.message().find(core::kRefusedRate), std::string::npos) << too_fast.message();
  const v1::ErrorDetail too_early = RefusalOnFdSocket();
  EXPECT_EQ(too_early.reason(), v1::ERROR_REASON_RATE_LIMITED);
  EXPECT_EQ(too_early.retry_after_ms(), door::ConnectBackoff::kFirst.count());
  EXPECT_NE(too_early.message().find(core::kRefusedBackoff), std::string::npos) << too_early.message();
  world_->clock.Advance(door::ConnectBackoff::kFirst);
  EXPECT_EQ(RefusalOnFdSocket().retry_after_ms(), 2 * door::ConnectBackoff::kFirst.count());
}

TEST_F(FrontDoorTest, OnTheFdSocketALimitOfConnectionsHasTheSameReply) {
  Open(1);
  const UniqueFd first = ConnectFrom(InPod(kPod));
  const v1::ErrorDetail refused = RefusalOnFdSocket();
  EXPECT_EQ(refused.reason(), v1::ERROR_REASON_RATE_LIMITED);
  EXPECT_EQ(refused.retry_after_ms(), door::ConnectBackoff::kFirst.count());
  EXPECT_NE(refused.message().find(core::kRefusedUidLimit), std::string::npos) << refused.message();
}

TEST_F(FrontDoorTest, OnTheFdSocketAStrangerIsNotToldToTryAgain) {
  Open(0);
  BecomeProcessOf("/kubepods.slice/kubepods-podx.slice");
  EXPECT_EQ(RefusalOnFdSocket().reason(), v1::ERROR_REASON_UNSPECIFIED);
}

// Without the descriptors of whoever still waits: the end of a listener must not close what they have sent.
TEST_F(FrontDoorTest, TheEndTurnsAwayWhoStillWaitsToBeAccepted) {
  Open(0);
  // As a program has it that found the socket before its name was removed.
  const std::string kept = root_ + "/kept";
  std::filesystem::create_hard_link(root_ + "/w/" + core::kRpcSocketName, kept);
  door_->StopAccepting();
  EXPECT_FALSE(std::filesystem::exists(root_ + "/w/" + core::kRpcSocketName));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  kept.copy(address.sun_path, sizeof(address.sun_path) - 1);
  const UniqueFd late(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(connect(late.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), -1);
  EXPECT_EQ(errno, ECONNREFUSED);
}

// They connected when the name still was there, and know nothing of its end.
TEST_F(FrontDoorTest, ThoseWhoWaitInASocketThatIsReplacedAreServed) {
  Open(0);
  door_->StopAccepting();
  auto earlier = workloads_->Listen(core::kRpcSocketName, SOCK_STREAM, 0600);
  ASSERT_TRUE(earlier.ok());
  std::vector<UniqueFd> waiting;
  for (int count = 0; count < 40; ++count) {
    waiting.push_back(Connect());
  }
  auto later = workloads_->Listen(core::kRpcSocketName, SOCK_STREAM, 0600);
  ASSERT_TRUE(later.ok());
  waiting.push_back(Connect());
  const auto rung = ProbeIdentityRung();
  ASSERT_TRUE(rung.ok());
  std::ofstream(root_ + "/proc/" + std::to_string(getpid()) + "/cgroup") << "0::" << InPod(kPod) << "\n";
  std::atomic<size_t> visitors{0};
  Acceptor acceptor(Admission({.rung = *rung, .rate = {}, .proc_folder = root_ + "/proc"}, world_->node, logger_,
                              std::make_shared<door::Places>(0, 0)),
                    world_->node, logger_, bulkhead_, SIZE_MAX,
                    [&](const AdmittedConnection&) { visitors.fetch_add(1); });
  ASSERT_TRUE(acceptor.Listen({}, *std::move(earlier)).ok());
  ASSERT_TRUE(acceptor.Listen({}, *std::move(later)).ok());
  ASSERT_TRUE(acceptor.Start().ok());
  EXPECT_TRUE(Eventually([&] { return visitors.load() == waiting.size(); })) << visitors.load();
}

TEST_F(FrontDoorTest, ASocketThatWasRemovedIsBackAtTheNextTick) {
  Open(0);
  const UniqueFd before = ConnectFrom(InPod(kPod));
  for (int round = 0; round < 3; ++round) {
    std::filesystem::remove(root_ + "/w/" + core::kRpcSocketName);
    EXPECT_TRUE(Eventually([&] {
      world_->clock.Advance(std::chrono::seconds(1));
      return std::filesystem::exists(root_ + "/w/" + core::kRpcSocketName);
    }));
    const UniqueFd after = ConnectFrom(InPod(kPod));
    EXPECT_EQ(server_.admitted().size(), static_cast<size_t>(round) + 2);
  }
  EXPECT_TRUE(Eventually([&] { return door_->connections() == 1; }));
  char byte = 0;
  EXPECT_EQ(recv(before.get(), &byte, 1, MSG_DONTWAIT), -1) << "the earlier connection was closed";
  EXPECT_EQ(errno, EAGAIN);
}

TEST_F(FrontDoorTest, ASocketThatCannotBeMadeAgainIsATrouble) {
  Open(0);
  EXPECT_EQ(door_->trouble(), std::nullopt);
  const std::string name = root_ + "/o/" + core::kAdminSocketName;
  std::filesystem::remove(name);
  std::filesystem::create_directory(name);
  const auto in_trouble = [&] {
    world_->clock.Advance(std::chrono::seconds(1));
    return door_->trouble().has_value();
  };
  EXPECT_TRUE(Eventually(in_trouble));
  EXPECT_NE(door_->trouble().value_or("").find(name), std::string::npos);
  std::filesystem::remove(name);
  EXPECT_TRUE(Eventually([&] { return !in_trouble(); }));
  EXPECT_TRUE(Connect(true).valid());
}

TEST_F(FrontDoorTest, AnUnidentifiedPeerIsRefusedAndReported) {
  Open(0);
  const UniqueFd refused = ConnectFrom("/kubepods.slice/kubepods-podx.slice");
  ASSERT_EQ(Refusals().size(), 1U);
  EXPECT_EQ(Refusals().front().note, core::kRefusedIdentity);
  EXPECT_FALSE(Refusals().front().process.has_value());
  EXPECT_TRUE(server_.admitted().empty());
}

// A process that has ended left the connection, say, and another has its pid now.
TEST_F(FrontDoorTest, AnUnidentifiedPeerIsNotHeldAgainstThePid) {
  Open(0);
  const UniqueFd refused = ConnectFrom("/kubepods.slice/kubepods-podx.slice");
  ASSERT_EQ(Refusals().size(), 1U);
  const UniqueFd newcomer = ConnectFrom(InPod(kPod));
  EXPECT_EQ(server_.admitted().size(), 1U);
}

TEST_F(FrontDoorTest, TheContainerReachesWhoServes) {
  Open(0);
  const UniqueFd connection = ConnectFrom(InPod(kPod));
  ASSERT_EQ(server_.admitted().size(), 1U);
  EXPECT_EQ(server_.admitted().front().caller.container, (core::Container{kPod, kId}));
  EXPECT_EQ(server_.admitted().front().caller.role, core::Role::kWorkload);
}

TEST_F(FrontDoorTest, OnTheOperatorsSocketThePolicyGivesTheRole) {
  core::WorldOptions options;
  options.policy = core::OneTenantForEachUid({});
  options.policy->roles.push_back({.match = {.pod_uid = kPod}, .role = core::Role::kDevicePlugin});
  Open(0, options);
  const UniqueFd plugin = ConnectFrom(InPod(kPod), true);
  const UniqueFd ourselves = ConnectFrom("/system.slice/sshd.service", true);
  const UniqueFd workload = ConnectFrom(InPod(kPod));
  ASSERT_EQ(server_.admitted().size(), 3U);
  EXPECT_EQ(server_.admitted()[0].caller.role, core::Role::kDevicePlugin);
  EXPECT_EQ(server_.admitted()[1].caller.role, core::Role::kOperator);
  EXPECT_EQ(server_.admitted()[2].caller.role, core::Role::kWorkload);
}

TEST_F(FrontDoorTest, SessionsOfAGrantThatIsOverAreEnded) {
  Open(0);
  const auto grant = world_->tenants.CreateGrant({.name = "short", .lifetime = std::chrono::milliseconds(1000)});
  ASSERT_TRUE(grant.ok()) << grant.status();
  auto session = world_->registry.Open(core::CallerNumbered(1), "test", grant->secret);
  ASSERT_TRUE(session.ok()) << session.status();
  session->reset();
  EXPECT_EQ(world_->observer.counts().ended, 0U);
  world_->clock.Advance(std::chrono::milliseconds(1001));
  EXPECT_TRUE(Eventually([&] { return world_->observer.counts().ended == 1; }));
  EXPECT_EQ(world_->observer.counts().cause, core::EndCause::kGrantExpired);
}

}  // namespace
}  // namespace rnicd::transport
