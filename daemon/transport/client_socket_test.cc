#include "daemon/transport/client_socket.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <future>
#include <memory>
#include <string>

#include "daemon/core/session/core_fixture_test.h"
#include "daemon/transport/sent_descriptor_test.h"

namespace rnicd::transport {
namespace {

// The daemon's and the client's end of a connection.
class ClientSocketTest : public ::testing::TestWithParam<int> {
 protected:
  ClientSocketTest() {
    std::array<int, 2> ends = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, GetParam() | SOCK_CLOEXEC, 0, ends.data()), 0);
    ours_.Reset(ends[0]);
    theirs_.Reset(ends[1]);
  }

  static bool carries_packets() { return GetParam() == SOCK_SEQPACKET; }

  const SteadyClock clock_;
  door::Bulkhead bulkhead_{clock_};
  UniqueSocket ours_;
  UniqueFd theirs_;
};

TEST_P(ClientSocketTest, WhatHoldsNothingHoldsNoDescriptors) {
  EXPECT_FALSE(HoldsDescriptors(ours_.get(), carries_packets()));
  shutdown(ours_.get(), SHUT_RDWR);
  EXPECT_FALSE(HoldsDescriptors(ours_.get(), carries_packets()));
  theirs_.Reset(-1);
  EXPECT_FALSE(HoldsDescriptors(ours_.get(), carries_packets()));
}

TEST_P(ClientSocketTest, DescriptorsBehindOtherBytesAreFound) {
  ASSERT_EQ(send(theirs_.get(), "before", 6, 0), 6);
  ASSERT_TRUE(SendWith(theirs_.get(), "with", STDIN_FILENO));
  theirs_.Reset(-1);
  EXPECT_TRUE(HoldsDescriptors(ours_.get(), carries_packets()));
  shutdown(ours_.get(), SHUT_RDWR);
  EXPECT_TRUE(HoldsDescriptors(ours_.get(), carries_packets()));
}

TEST_P(ClientSocketTest, WithoutDescriptorsItIsClosedAtOnce) {
  const auto kept = std::make_shared<int>();
  {
    ClientSocket socket(std::move(ours_), {.door = carries_packets() ? Door::kFd : Door::kWorkload}, bulkhead_);
    socket.Keep(kept);
  }
  EXPECT_EQ(kept.use_count(), 1);
  char byte = 0;
  EXPECT_EQ(recv(theirs_.get(), &byte, 1, MSG_DONTWAIT), 0) << "the client sees the end";
}

TEST_P(ClientSocketTest, TheConnectionGoesOnWithACopyThatWasPassedOn) {
  const UniqueSocket copy(dup(ours_.get()));
  const auto kept = std::make_shared<int>();
  {
    ClientSocket socket(std::move(ours_), {.door = carries_packets() ? Door::kFd : Door::kWorkload}, bulkhead_);
    socket.Keep(kept);
    socket.PassOn();
  }
  EXPECT_TRUE(Eventually([&] { return kept.use_count() == 1; }));
  ASSERT_EQ(send(theirs_.get(), "x", 1, 0), 1);
  char byte = 0;
  EXPECT_EQ(recv(copy.get(), &byte, 1, 0), 1);
}

// The process with the copy has ended, and left what the client has sent.
TEST_P(ClientSocketTest, OneThatWasPassedOnAndIsTheLastIsClosedInTheBulkhead) {
  LingeringSocket lingering;
  ASSERT_TRUE(SendWith(theirs_.get(), "x", lingering.get()));
  lingering.ForgetOurs();
  {
    ClientSocket socket(std::move(ours_), {.door = carries_packets() ? Door::kFd : Door::kWorkload}, bulkhead_);
    socket.SetOwner("pod");
    socket.PassOn();
  }
  EXPECT_EQ(bulkhead_.size(), 1u) << "it is being closed";
  lingering.Reset();
  EXPECT_TRUE(Eventually([&] { return bulkhead_.size() == 0; }));
}

TEST_P(ClientSocketTest, OneWhoseCloseBlocksDelaysOnlyOtherClosesOfItsOwner) {
  LingeringSocket lingering;
  ASSERT_TRUE(SendWith(theirs_.get(), "x", lingering.get()));
  lingering.ForgetOurs();
  const auto kept = std::make_shared<int>();
  {
    ClientSocket socket(std::move(ours_), {.door = carries_packets() ? Door::kFd : Door::kWorkload}, bulkhead_);
    socket.SetOwner("hostile");
    socket.Keep(kept);
  }
  for (const char* const owner : {"other", "hostile"}) {
    std::promise<void> others;
    bulkhead_.Run(owner, [&others] { others.set_value(); });
    others.get_future().wait();
  }
  EXPECT_EQ(kept.use_count(), 2) << "its place is taken until it is closed";
  lingering.Reset();
  EXPECT_TRUE(Eventually([&] { return kept.use_count() == 1; }));
}

INSTANTIATE_TEST_SUITE_P(Types, ClientSocketTest, ::testing::Values(SOCK_STREAM, SOCK_SEQPACKET),
                         [](const auto& type) { return type.param == SOCK_STREAM ? "stream" : "packets"; });

// A stream without descriptors is closed at once even when its client left bytes. Packets are not looked through.
TEST(HoldsDescriptors, OnlyAPacketSocketIsSuspectedForItsBytes) {
  for (const int type : {SOCK_STREAM, SOCK_SEQPACKET}) {
    std::array<int, 2> ends = {-1, -1};
    ASSERT_EQ(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends.data()), 0);
    const UniqueFd ours(ends[0]);
    const UniqueFd theirs(ends[1]);
    ASSERT_EQ(send(theirs.get(), "bytes", 5, 0), 5);
    EXPECT_EQ(HoldsDescriptors(ours.get(), type == SOCK_SEQPACKET), type == SOCK_SEQPACKET);
  }
}

// Linux 6.16 and later. An older kernel must say that it cannot.
TEST(RefuseDescriptors, TheSenderIsRefusedBeforeItsConnectionIsAccepted) {
  const UniqueFd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  // Its option exists since then, SO_PASSRIGHTS.
  int before = 0;
  socklen_t bytes = sizeof(before);
  const bool takes_them = getsockopt(listener.get(), SOL_SOCKET, 83, &before, &bytes) != 0;
  EXPECT_EQ(RefuseDescriptors(listener.get()), !takes_them);
  sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = {}};
  ASSERT_EQ(bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(sa_family_t)), 0);
  ASSERT_EQ(listen(listener.get(), 1), 0);
  socklen_t size = sizeof(address);
  ASSERT_EQ(getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  const UniqueFd client(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(connect(client.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
  EXPECT_EQ(SendWith(client.get(), "x", STDIN_FILENO), takes_them);
  const UniqueFd accepted(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  EXPECT_EQ(SendWith(client.get(), "x", STDIN_FILENO), takes_them);
  EXPECT_EQ(send(client.get(), "x", 1, 0), 1);
}

}  // namespace
}  // namespace rnicd::transport
