#include "daemon/transport/peer.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <vector>

namespace rnicd::transport {
namespace {

constexpr std::chrono::milliseconds kPatience{20000};

// A listener on an address of its own, that the kernel picks.
class Listener {
 public:
  Listener() : fd_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    address_.sun_family = AF_UNIX;
    EXPECT_EQ(bind(fd_.get(), reinterpret_cast<sockaddr*>(&address_), sizeof(sa_family_t)), 0);
    size_ = sizeof(address_);
    EXPECT_EQ(getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address_), &size_), 0);
    EXPECT_EQ(listen(fd_.get(), 16), 0);
  }
  // Async-signal-safe, for a forked child.
  int Connect() const {
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    return connect(fd, reinterpret_cast<const sockaddr*>(&address_), size_) == 0 ? fd : -1;
  }
  UniqueFd Accept() const { return UniqueFd(accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC)); }

 private:
  UniqueFd fd_;
  sockaddr_un address_ = {};
  socklen_t size_ = 0;
};

// A forked process that runs `body` and then sleeps until it is killed.
class Child {
 public:
  explicit Child(const std::function<void()>& body) : pid_(fork()) {
    if (pid_ == 0) {
      body();
      while (true) {
        pause();
      }
    }
  }
  ~Child() { Kill(); }
  pid_t pid() const { return pid_; }
  void Kill() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
      pid_ = -1;
    }
  }

 private:
  pid_t pid_;
};

class PeerTest : public ::testing::TestWithParam<IdentityRung> {
 protected:
  Peer Identify(const UniqueFd& socket) {
    auto peer = IdentifyPeer(socket.get(), GetParam(), core::Role::kWorkload);
    EXPECT_TRUE(peer.ok()) << peer.status();
    return *peer;
  }

  Listener listener_;
};

// The rung this kernel has, and the one below it, which every supported kernel has.
std::vector<IdentityRung> RungsOfThisKernel() {
  std::vector<IdentityRung> rungs = {IdentityRung::kPidfdOpen};
  const auto best = ProbeIdentityRung();
  if (best.ok() && *best != rungs.front()) {
    rungs.push_back(*best);
  }
  return rungs;
}

INSTANTIATE_TEST_SUITE_P(Rungs, PeerTest, ::testing::ValuesIn(RungsOfThisKernel()),
                         [](const auto& rung) { return std::string(IdentityRungName(rung.param)); });

TEST_P(PeerTest, OurOwnSocketNamesOurOwnProcess) {
  const UniqueFd ours(listener_.Connect());
  const Peer peer = Identify(listener_.Accept());
  EXPECT_EQ(peer.caller.pid, getpid());
  EXPECT_EQ(peer.caller.uid, geteuid());
  EXPECT_EQ(peer.caller.gid, getegid());
  EXPECT_EQ(peer.caller.role, core::Role::kWorkload);
  EXPECT_FALSE(peer.process->HasExited(std::chrono::milliseconds(0)));
  EXPECT_EQ(peer.caller.handle, peer.process);
}

TEST_P(PeerTest, OneProcessHasOneKeyAndAnotherHasAnother) {
  const auto connect_twice = [this] {
    listener_.Connect();
    listener_.Connect();
  };
  Child first(connect_twice);
  const core::ProcessKey key = Identify(listener_.Accept()).caller.process;
  EXPECT_EQ(Identify(listener_.Accept()).caller.process, key);
  Child second(connect_twice);
  const Peer other = Identify(listener_.Accept());
  EXPECT_EQ(other.caller.pid, second.pid());
  EXPECT_NE(other.caller.process, key);
  EXPECT_NE(key, core::ProcessKey{});
}

TEST_P(PeerTest, TheExitOfTheProcessIsNoticed) {
  Child child([this] { listener_.Connect(); });
  const UniqueFd socket = listener_.Accept();
  const Peer peer = Identify(socket);
  EXPECT_FALSE(peer.process->HasExited(std::chrono::milliseconds(5)));
  child.Kill();
  EXPECT_TRUE(peer.process->HasExited(kPatience));
}

// The socket lives on in a forked child; what it owns hangs on the process that connected.
TEST_P(PeerTest, AForkThatKeepsTheSocketDoesNotKeepTheProcessAlive) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  UniqueFd lifeline(ends[1]);
  const UniqueFd reader(ends[0]);
  Child child([&] {
    listener_.Connect();
    if (fork() == 0) {
      // Ends when the test closes its end of the pipe.
      close(ends[1]);
      char byte = 0;
      (void)!read(ends[0], &byte, 1);
      _exit(0);
    }
  });
  const Peer peer = Identify(listener_.Accept());
  EXPECT_EQ(peer.caller.pid, child.pid());
  child.Kill();
  EXPECT_TRUE(peer.process->HasExited(kPatience));
}

TEST_P(PeerTest, AProcessThatIsGoneIsRefusedOrKnownToBeDead) {
  Child child([this] { listener_.Connect(); });
  const UniqueFd socket = listener_.Accept();
  child.Kill();
  const auto peer = IdentifyPeer(socket.get(), GetParam(), core::Role::kWorkload);
  if (peer.ok()) {
    EXPECT_TRUE(peer->process->HasExited(kPatience));
  } else {
    EXPECT_EQ(peer.status().code(), absl::StatusCode::kUnauthenticated);
  }
}

TEST_P(PeerTest, WhatIsNoSocketNamesNobody) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const UniqueFd reader(ends[0]);
  const UniqueFd writer(ends[1]);
  for (const int fd : {reader.get(), -1}) {
    EXPECT_EQ(IdentifyPeer(fd, GetParam(), core::Role::kWorkload).status().code(), absl::StatusCode::kUnauthenticated);
  }
}

TEST(IdentityRung, ThisKernelHasOne) {
  const auto rung = ProbeIdentityRung();
  ASSERT_TRUE(rung.ok()) << rung.status();
  EXPECT_STREQ(IdentityRungName(IdentityRung::kPeerPidfd), "peer_pidfd");
  EXPECT_STREQ(IdentityRungName(IdentityRung::kPidfdOpen), "pidfd_open");
}

}  // namespace
}  // namespace rnicd::transport
