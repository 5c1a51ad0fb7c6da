#include "client/ctl/trials/peer_link_linux.h"

#include <sys/socket.h>

#include <array>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rnicd::ctl {
namespace {

constexpr std::chrono::milliseconds kEnough{60'000};
constexpr std::chrono::milliseconds kMoment{1};

// A link, and the socket of its peer.
struct LinkAndPeer {
  PeerLink link;
  UniqueSocket peer;

  explicit LinkAndPeer(std::chrono::milliseconds wait, std::array<int, 2> ends = Ends())
      : link(UniqueSocket(ends[0]), wait), peer(ends[1]) {}

  void PeerSends(const std::string& bytes) const {
    EXPECT_EQ(send(peer.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  }
  std::string ErrorOfReceive() {
    const absl::StatusOr<std::string> line = link.Receive("its hello");
    return line.ok() ? "a line: " + *line : std::string(line.status().message());
  }

 private:
  static std::array<int, 2> Ends() {
    std::array<int, 2> ends{-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
    return ends;
  }
};

TEST(PeerLink, LinesArriveWhateverTheirPieces) {
  LinkAndPeer both(kEnough);
  both.PeerSends("one\ntwo\nth");
  EXPECT_EQ(*both.link.Receive("a line"), "one");
  EXPECT_EQ(*both.link.Receive("a line"), "two");
  both.PeerSends("ree\n\n");
  EXPECT_EQ(*both.link.Receive("a line"), "three");
  EXPECT_EQ(*both.link.Receive("a line"), "");
}

TEST(PeerLink, LongestLineArrivesAndALongerOneIsRefused) {
  LinkAndPeer both(kEnough);
  const std::string longest(kPeerLineMax - 1, 'x');
  both.PeerSends(longest + "\n" + longest + "xx\n");
  EXPECT_EQ(*both.link.Receive("its hello"), longest);
  EXPECT_EQ(both.ErrorOfReceive(), "the peer sent a line of more than 512 bytes instead of its hello");
}

TEST(PeerLink, PeerThatHangsUpIsNamed) {
  LinkAndPeer both(kEnough);
  both.PeerSends("half of a line");
  both.peer.Reset(-1);
  EXPECT_EQ(both.ErrorOfReceive(), "the peer hung up instead of sending its hello");
  EXPECT_EQ(both.link.Send("hello\n").message(), "the peer hung up");
}

TEST(PeerLink, SilentPeerIsNotWaitedForForever) {
  LinkAndPeer both(kMoment);
  both.PeerSends("half of a line");
  EXPECT_EQ(both.ErrorOfReceive(), "the peer did not send its hello within 1 ms");
}

TEST(PeerLink, PeerThatTakesNothingIsNotWaitedForForever) {
  LinkAndPeer both(kMoment);
  const std::string much(16 << 20, 'x');
  EXPECT_EQ(both.link.Send(much).message(), "the peer takes no bytes");
}

TEST(PeerListener, AcceptsOverEitherFamilyAndGivesUp) {
  for (const std::string host : {"127.0.0.1", "::1"}) {
    const absl::StatusOr<PeerListener> listener = PeerListener::Open({.host = host, .port = 0});
    if (!listener.ok() && host == "::1") {
      // A kernel where IPv6 is turned off has no such address.
      EXPECT_THAT(std::string(listener.status().message()), testing::HasSubstr("[::1]:0"));
      continue;
    }
    ASSERT_TRUE(listener.ok()) << listener.status();
    EXPECT_EQ(listener->Accept(kMoment).status().message(), "no peer connected within 1 ms");
    absl::StatusOr<PeerLink> far = PeerLink::Connect(listener->address(), kEnough);
    ASSERT_TRUE(far.ok()) << far.status();
    absl::StatusOr<PeerLink> near = listener->Accept(kEnough);
    ASSERT_TRUE(near.ok()) << near.status();
    ASSERT_TRUE(far->Send("hello\n").ok());
    EXPECT_EQ(*near->Receive("its hello"), "hello");
  }
}

TEST(PeerListener, WhatCannotBeReachedOrTakenIsNamed) {
  const absl::StatusOr<PeerListener> listener = PeerListener::Open({.host = "127.0.0.1", .port = 0});
  ASSERT_TRUE(listener.ok()) << listener.status();
  const std::string where = FormatHostPort(listener->address());
  EXPECT_EQ(PeerListener::Open(listener->address()).status().message(),
            "cannot listen on " + where + ": Address already in use");
  EXPECT_EQ(PeerLink::Connect({.host = "nobody.invalid", .port = 1}, kMoment).status().code(),
            absl::StatusCode::kDeadlineExceeded);
}

}  // namespace
}  // namespace rnicd::ctl
