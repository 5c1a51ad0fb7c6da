#include "daemon/pipes/front_door.h"

#include <windows.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "base/secrets/secret.h"
#include "daemon/core/tenant/observation.h"
#include "daemon/pipes/front_door_fixture.h"

namespace rnicd::pipes {
namespace {

using testing::IsEmpty;

constexpr std::chrono::seconds kLongerThanSilence{11};

// --- identity ---

TEST_F(FrontDoorTest, TheCallerIsTheProcessThatOpenedThePipeAndItsUser) {
  Open();
  const PipeClient client = Connect();
  const UniqueSocket connection = ConnectTo(client.Hello().port());
  const core::Caller caller = CallerOf(1);
  FILETIME created;
  FILETIME unused[3];
  ASSERT_NE(GetProcessTimes(GetCurrentProcess(), &created, &unused[0], &unused[1], &unused[2]), 0);
  EXPECT_EQ(caller.process.high, uint64_t{created.dwHighDateTime} << 32 | created.dwLowDateTime);
  EXPECT_EQ(caller.process.low, GetCurrentProcessId());
  EXPECT_EQ(caller.sid, SidOfThisProcess());
  EXPECT_TRUE(caller.sid.starts_with("S-1-5-")) << caller.sid;
  EXPECT_EQ(caller.role, core::Role::kWorkload);
  EXPECT_FALSE(caller.handle->HasExited(std::chrono::milliseconds(0)));
  EXPECT_EQ(door_->connections(), 1u);
}

TEST_F(FrontDoorTest, OnlyTheOperatorsPipeMakesAnOperatorAndHasAPortAndASecretOfItsOwn) {
  Open();
  const PipeClient workload = Connect();
  const PipeClient client(names_.operators);
  const v1::PipeReply hello = client.Hello();
  EXPECT_NE(hello.port(), workload.Hello().port());
  EXPECT_NE(hello.secret(), workload.Hello().secret());
  const UniqueSocket connection = ConnectTo(hello.port());
  EXPECT_EQ(CallerOf(1).role, core::Role::kOperator);
}

TEST_F(FrontDoorTest, ASecondServerOfTheSameNameIsRefused) {
  Open();
  EXPECT_FALSE(MakeDoor({})->Start(names_).ok());
  ExpectServes();
}

TEST(PipeSecurity, AWorkloadMayNotCreateAnInstance) {
  constexpr uint32_t kCreateInstance = FILE_CREATE_PIPE_INSTANCE;
  EXPECT_EQ(kClientRights & kCreateInstance, 0u);
  EXPECT_EQ(kClientRights | kCreateInstance, uint32_t{FILE_GENERIC_READ | FILE_GENERIC_WRITE});
  const std::string text = DescriptorText(Door::kWorkload, "S-1-5-18");
  EXPECT_TRUE(text.ends_with("(A;;0x12019b;;;AU)")) << text;
  EXPECT_TRUE(SecurityDescriptor::Parse(text).ok());
}

TEST(PipeSecurity, TheOperatorsPipeIsForSystemAdministratorsAndTheDaemonsUser) {
  const std::string text = DescriptorText(Door::kOperator, "S-1-5-21-1-2-3-1001");
  EXPECT_EQ(text, "D:P(A;;FA;;;SY)(A;;FA;;;BA)(A;;FA;;;S-1-5-21-1-2-3-1001)");
  EXPECT_TRUE(SecurityDescriptor::Parse(text).ok());
}

// --- connections over TCP ---

TEST_F(FrontDoorTest, AConnectionOfAProcessWithoutAPipeIsRefused) {
  Open();
  uint32_t port = 0;
  {
    const PipeClient operator_client(names_.operators);
    port = Connect().Hello().port();
  }
  // The pipe of the port's own door counts, and that is gone.
  EXPECT_TRUE(Eventually([&] { return HangsUp(ConnectTo(port)); }));
  EXPECT_TRUE(IsRefused(core::kRefusedIdentity));
  EXPECT_EQ(door_->connections(), 0u);
}

TEST_F(FrontDoorTest, EachConnectionMustCarryTheSecretOfItsProcess) {
  Open();
  const PipeClient client = Connect();
  const v1::PipeReply hello = client.Hello();
  EXPECT_EQ(hello.secret().size(), 64u);
  const UniqueSocket connection = ConnectTo(hello.port());
  CallerOf(1);
  const door::Admitted admitted = server_.admitted().front();
  ASSERT_TRUE(admitted.secret.has_value());
  EXPECT_TRUE(admitted.secret->Matches(hello.secret()));
  EXPECT_FALSE(admitted.secret->Matches(""));
  EXPECT_FALSE(admitted.secret->Matches(std::string(64, '0')));
}

TEST_F(FrontDoorTest, AProcessIsFoundBehindASocketForBothFamilies) {
  Open();
  const PipeClient client = Connect();
  const UniqueSocket connection = ConnectByBothFamiliesTo(client.Hello().port());
  EXPECT_EQ(CallerOf(1).process.low, GetCurrentProcessId());
}

TEST_F(FrontDoorTest, AProcessHasOneSecretUntilItsLastPipeIsClosed) {
  Open();
  auto first = std::make_unique<PipeClient>(names_.workloads);
  const std::string secret = first->Hello().secret();
  auto second = std::make_unique<PipeClient>(names_.workloads);
  EXPECT_EQ(second->Hello().secret(), secret);
  const UniqueSocket connection = ConnectTo(second->Hello().port());
  CallerOf(1);
  first.reset();
  EXPECT_EQ(second->Hello().secret(), secret);
  EXPECT_EQ(door_->connections(), 1u);
  second.reset();
  EXPECT_TRUE(HangsUp(connection)) << "the connection ends with the last pipe";
  EXPECT_TRUE(Eventually([&] { return door_->connections() == 0; }));
  EXPECT_NE(Connect().Hello().secret(), secret);
}

TEST_F(FrontDoorTest, AConnectionThatTheServerEndsIsForgotten) {
  Open();
  const PipeClient client = Connect();
  const UniqueSocket connection = ConnectTo(client.Hello().port());
  CallerOf(1);
  server_.admitted().front().on_end();
  EXPECT_TRUE(Eventually([&] { return door_->connections() == 0; }));
}

TEST_F(FrontDoorTest, TheLastPipeOfALivingProcessEndsItsSessions) {
  Open();
  PipeClient first = Connect();
  PipeClient second = Connect();
  const UniqueSocket connection = ConnectTo(first.Hello().port());
  EXPECT_NE(second.Hello().port(), 0u);
  const auto session = world_.registry.Open(CallerOf(1), "ours");
  ASSERT_TRUE(session.ok()) << session.status();
  first.Close();
  EXPECT_NE(second.Hello().port(), 0u);
  EXPECT_TRUE((*session)->Begin().ok());
  second.Close();
  EXPECT_TRUE(Eventually([&] { return world_.observer.counts().ended == 1; }));
  EXPECT_EQ(world_.observer.counts().cause, core::EndCause::kConnectionLost);
}

TEST_F(FrontDoorTest, APipeAtTheOtherDoorKeepsTheSessions) {
  Open();
  PipeClient client = Connect();
  PipeClient admin(names_.operators);
  const UniqueSocket connection = ConnectTo(client.Hello().port());
  EXPECT_NE(admin.Hello().port(), 0u);
  const auto session = world_.registry.Open(CallerOf(1), "ours");
  ASSERT_TRUE(session.ok()) << session.status();
  client.Close();
  EXPECT_TRUE(HangsUp(connection));
  EXPECT_TRUE((*session)->Begin().ok());
  admin.Close();
  EXPECT_TRUE(Eventually([&] { return world_.observer.counts().ended == 1; }));
}

TEST_F(FrontDoorTest, ConnectionsOfOneUserAreLimited) {
  Open({.max_per_owner = 2});
  const PipeClient client = Connect();
  const uint32_t port = client.Hello().port();
  const UniqueSocket first = ConnectTo(port);
  const UniqueSocket second = ConnectTo(port);
  CallerOf(2);
  EXPECT_TRUE(HangsUp(ConnectTo(port)));
  EXPECT_TRUE(IsRefused(core::kRefusedUidLimit));
  server_.admitted().front().on_end();
  EXPECT_TRUE(Eventually([&] { return door_->connections() == 1; }));
  const UniqueSocket next = ConnectTo(port);
  CallerOf(3);
}

// --- hostile clients ---

TEST_F(FrontDoorTest, PipesOfOneUserAreLimitedAndOperatorsAreNot) {
  Open({.max_per_owner = 3});
  std::vector<PipeClient> clients;
  for (int index = 0; index < 3; ++index) {
    clients.push_back(Connect());
    EXPECT_NE(clients.back().Hello().port(), 0u);
  }
  EXPECT_TRUE(Connect().HangsUp());
  EXPECT_TRUE(IsRefused(core::kRefusedUidLimit));
  EXPECT_NE(PipeClient(names_.operators).Hello().port(), 0u);
  clients.pop_back();
  EXPECT_TRUE(ServesInTime());
}

TEST_F(FrontDoorTest, NewPipesOfOneUserAreLimitedByARateAndOperatorsAreNot) {
  Open({.rate = {.per_second = 1, .burst = 2}});
  const PipeClient first = Connect();
  const PipeClient second = Connect();
  EXPECT_NE(first.Hello().port(), 0u);
  EXPECT_NE(second.Hello().port(), 0u);
  EXPECT_TRUE(Connect().HangsUp());
  EXPECT_TRUE(IsRefused(core::kRefusedRate));
  EXPECT_NE(PipeClient(names_.operators).Hello().port(), 0u);
  world_.clock.Advance(std::chrono::seconds(1));
  EXPECT_TRUE(ServesInTime());
}

TEST_F(FrontDoorTest, NewConnectionsOfOneUserAreLimitedByTheSameRate) {
  Open({.rate = {.per_second = 1, .burst = 2}});
  const PipeClient client = Connect();
  const uint32_t port = client.Hello().port();
  const UniqueSocket first = ConnectTo(port);
  const UniqueSocket second = ConnectTo(port);
  CallerOf(2);
  EXPECT_TRUE(HangsUp(ConnectTo(port)));
  EXPECT_TRUE(IsRefused(core::kRefusedRate));
}

TEST_F(FrontDoorTest, AFloodOfClientsThatLeaveAtOnceLeavesNothing) {
  Open({.max_per_owner = 4});
  for (int index = 0; index < 200; ++index) {
    const PipeClient client = Connect();
    if (index % 3 == 0) {
      client.Send("half of a message");
    }
  }
  EXPECT_TRUE(ServesInTime());
}

TEST_F(FrontDoorTest, AClientThatSaysNothingIsDropped) {
  Open();
  const PipeClient silent = Connect();
  const PipeClient client = Connect();
  EXPECT_NE(client.Hello().port(), 0u);
  const UniqueSocket connection = ConnectTo(client.Hello().port());
  CallerOf(1);
  world_.clock.Advance(kLongerThanSilence);
  EXPECT_TRUE(silent.HangsUp());
  EXPECT_TRUE(IsRefused(core::kRefusedSilent));
  EXPECT_NE(client.Hello().port(), 0u) << "a client with a connection may be silent";
}

TEST_F(FrontDoorTest, OfSilentConnectionsTheOldestGoFirst) {
  constexpr size_t kMoreThanAreKept = 300;
  Open();
  const PipeClient client = Connect();
  const uint32_t port = client.Hello().port();
  const Instant first = std::chrono::steady_clock::now();
  std::vector<UniqueSocket> silent;
  while (silent.size() < kMoreThanAreKept) {
    silent.push_back(ConnectSilentlyTo(port));
  }
  EXPECT_TRUE(HangsUp(silent.front()));
  EXPECT_LT(std::chrono::steady_clock::now() - first, std::chrono::seconds(10)) << "its own time was over";
  const UniqueSocket connection = ConnectTo(port);
  CallerOf(1);
}

TEST_F(FrontDoorTest, ABrokenOrTooLargeMessageIsAnsweredAndEndsThatClientOnly) {
  Open();
  const PipeClient other = Connect();
  const std::string secret = other.Hello().secret();
  for (const std::string& bytes :
       {std::string("\xff\xff\xff"), std::string("half"), std::string("\x0a", 1),
        std::string(kRequestBytesMax + 1, 'x'), std::string(4000, 'x'), std::string(1 << 20, 'x')}) {
    const PipeClient client = Connect();
    // It fails where the daemon closes the pipe before all of a large message has gone into it.
    (void)client.Send(bytes);
    const std::optional<v1::PipeReply> reply = client.Receive();
    ASSERT_TRUE(reply.has_value()) << bytes.size();
    EXPECT_EQ(reply->error().reason(), v1::ERROR_REASON_FD_PACKET_MALFORMED) << bytes.size();
    EXPECT_TRUE(client.HangsUp()) << bytes.size();
  }
  EXPECT_EQ(other.Hello().secret(), secret);
}

TEST_F(FrontDoorTest, AClientThatDoesNotReadItsRepliesHoldsUpNobody) {
  Open();
  const PipeClient client = Connect();
  v1::PipeRequest hello;
  hello.mutable_hello();
  EXPECT_TRUE(client.Send(hello.SerializeAsString()));
  EXPECT_TRUE(client.Send(hello.SerializeAsString()));
  ExpectServes();
}

TEST_F(FrontDoorTest, AStoppedDoorAcceptsNothingAndEndsWhatItHad) {
  Open();
  const PipeClient client = Connect();
  const v1::PipeReply hello = client.Hello();
  const UniqueSocket connection = ConnectTo(hello.port());
  CallerOf(1);
  door_->StopAccepting();
  EXPECT_TRUE(Eventually([&] { return !Connect().connected(); }));
  EXPECT_EQ(client.Hello().secret(), hello.secret()) << "an open pipe continues";
  door_->Stop();
  EXPECT_TRUE(client.HangsUp());
  EXPECT_TRUE(HangsUp(connection));
}

}  // namespace
}  // namespace rnicd::pipes
