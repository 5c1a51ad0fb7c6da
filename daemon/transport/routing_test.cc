#include <gtest/gtest.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "daemon/transport/handover_fixture_test.h"
#include "daemon/transport/sent_descriptor_test.h"

namespace rnicd::transport {
namespace {

UniqueSocket CopyOf(int socket) { return UniqueSocket(dup(socket)); }

// The heir routes every caller to the old one, as the link between two processes does.
class RoutingTest : public HandoverTest {
 protected:
  RoutingTest() {
    FrontDoorOptions options;
    options.route = [this](const AdmittedConnection& admitted) {
      routed_.Set(admitted.peer.caller);
      const auto& tenant = admitted.peer.caller.door;
      const Door door = admitted.door();
      const GrantId grant = tenant == nullptr ? GrantId{} : tenant->grant();
      old_->door->Receive(
          door, grant, CopyOf(admitted.socket->get()),
          [this, door, grant](std::shared_ptr<const UniqueSocket> socket) {
            heir_->door->Receive(door, grant, CopyOf(socket->get()));
          },
          [this](const core::ProcessKey& process) {
            asked_.Set(process);
            return old_holds_.load();
          });
      return true;
    };
    MakeHeir(options);
  }
  // Before what its handlers use.
  ~RoutingTest() override { heir_->door->Stop(); }

  // A client that has sent something before anybody accepts it.
  UniqueFd ConnectAndTakeOver(const std::string& path, int type, const std::string& bytes) {
    HandedDoor handed = old_->Give();
    UniqueFd client = ConnectTo(path, type);
    EXPECT_EQ(send(client.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
    old_->door->Retire(7);
    EXPECT_TRUE(heir_->Start(std::move(handed)).ok());
    return client;
  }

  std::atomic<bool> old_holds_{true};
  core::Awaited<core::Caller> routed_;
  core::Awaited<core::ProcessKey> asked_;
};

TEST_F(RoutingTest, ACallerIsServedByItsGenerationWithAllThatItHasSent) {
  const UniqueFd client = ConnectAndTakeOver(RpcSocket(), SOCK_STREAM, "early");
  EXPECT_EQ(Answer(client), kOld);
  EXPECT_EQ(old_->server.read(), std::vector<std::string>{"early"});
  const core::Caller caller = old_->server.admitted().front().caller;
  const core::Caller routed = routed_.Get().value_or(core::Caller{});
  EXPECT_EQ(caller.process, routed.process);
  EXPECT_EQ(caller.process, asked_.Get());
  EXPECT_EQ(caller.uid, routed.uid);
  EXPECT_EQ(caller.container, (core::Container{kPod, kId}));
  EXPECT_TRUE(heir_->server.admitted().empty());
  EXPECT_EQ(heir_->door->connections(), 0u);
}

TEST_F(RoutingTest, TheRetiredOneSeesTheEndOfARoutedClient) {
  TakeOver();
  UniqueFd client = ConnectToRpc();
  EXPECT_EQ(Answer(client), kOld);
  EXPECT_TRUE(Eventually([&] { return old_->door->connections() == 1; }));
  client.Reset(-1);
  EXPECT_TRUE(Eventually([&] { return old_->door->connections() == 0; }));
}

TEST_F(RoutingTest, ACallerThatHoldsNothingIsHandedBackUnread) {
  old_holds_.store(false);
  const UniqueFd client = ConnectAndTakeOver(RpcSocket(), SOCK_STREAM, "early");
  EXPECT_EQ(Answer(client), kHeir);
  EXPECT_EQ(heir_->server.read(), std::vector<std::string>{"early"});
  EXPECT_EQ(heir_->server.admitted().front().caller.process, routed_.Get()->process);
  EXPECT_TRUE(old_->server.admitted().empty());
}

TEST_F(RoutingTest, AnOperatorIsNotRouted) {
  TakeOver();
  EXPECT_EQ(Answer(ConnectTo(AdminSocket(), SOCK_STREAM)), kHeir);
  EXPECT_EQ(routed_.times(), 0);
}

TEST_F(RoutingTest, WhatTheKernelRefusedBeforeItRefusesAfterwards) {
  EXPECT_EQ(Answer(ConnectToRpc()), kOld);
  TakeOver();
  EXPECT_EQ(Answer(ConnectToRpc()), kOld);
  const std::vector<door::Admitted> admitted = old_->server.admitted();
  ASSERT_EQ(admitted.size(), 2u);
  EXPECT_EQ(admitted[0].refuses_descriptors, admitted[1].refuses_descriptors);
}

TEST_F(RoutingTest, APacketIsAnsweredByTheRetiredOne) {
  v1::FdRequest request;
  request.set_fd_ticket("no ticket");
  const UniqueFd client = ConnectAndTakeOver(FdSocket(), SOCK_SEQPACKET, request.SerializeAsString());
  std::array<char, 4096> bytes;
  const ssize_t size = recv(client.get(), bytes.data(), bytes.size(), 0);
  v1::FdReply reply;
  ASSERT_TRUE(size > 0 && reply.ParseFromArray(bytes.data(), static_cast<int>(size)));
  EXPECT_EQ(reply.error().reason(), v1::ERROR_REASON_FD_PACKET_MALFORMED);
  EXPECT_EQ(routed_.times(), 1);
  EXPECT_EQ(asked_.times(), 1);
}

// Without a ticket nobody receives it; to close it takes a minute.
TEST_F(RoutingTest, ADescriptorInARoutedPacketBlocksNoThread) {
  HandedDoor handed = old_->Give();
  LingeringSocket lingering;
  const UniqueFd client = ConnectTo(FdSocket(), SOCK_SEQPACKET);
  ASSERT_TRUE(SendWith(client.get(), "x", lingering.get()));
  lingering.ForgetOurs();
  old_->door->Retire(7);
  ASSERT_TRUE(heir_->Start(std::move(handed)).ok());
  char byte = 0;
  EXPECT_GT(recv(client.get(), &byte, 1, 0), 0) << "a refusal";
  EXPECT_EQ(recv(client.get(), &byte, 1, 0), 0) << "and the end";
  for (Generation* generation : {old_.get(), heir_.get()}) {
    generation->Tick();
  }
  EXPECT_EQ(Answer(ConnectToRpc()), kOld);
}

class RoutingThroughADoor : public RoutingTest {
 protected:
  // The heir knows the grant as well.
  UniqueFd Connect() {
    tenant_ = MakeDoor(*old_, "a");
    EXPECT_TRUE(
        heir_->world.tenants
            .CreateGrant(
                {.name = "a", .renewal = core::GrantRenewal{.id = tenant_->grant(), .digest = {}}, .door = true})
            .ok());
    TakeOver();
    return ConnectTo(old_->door->doors().DirectoryOf(tenant_->grant()) + "/" + core::kRpcSocketName, SOCK_STREAM);
  }

  std::shared_ptr<core::Tenant> tenant_;
};

TEST_F(RoutingThroughADoor, ACallerIsAdmittedAsItsGrant) {
  EXPECT_EQ(Answer(Connect()), kOld);
  EXPECT_EQ(old_->server.admitted().front().caller.door, tenant_);
}

TEST_F(RoutingThroughADoor, ACallerOfAnEndedGrantIsHandedBack) {
  UniqueFd client = Connect();
  EXPECT_EQ(Answer(client), kOld);
  EXPECT_TRUE(old_->world.tenants.RevokeGrant(tenant_->grant()).ok());
  EXPECT_EQ(
      Answer(ConnectTo(old_->door->doors().DirectoryOf(tenant_->grant()) + "/" + core::kRpcSocketName, SOCK_STREAM)),
      kHeir);
}

}  // namespace
}  // namespace rnicd::transport
