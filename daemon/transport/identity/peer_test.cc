#include "daemon/transport/identity/peer.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/waiting_fixture.h"
#include "daemon/transport/identity/pod_names_test.h"

namespace rnicd::transport {
namespace {

// A listener on an address that the kernel picks.
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
  // Leaves the child dead, with its pid in use until Kill.
  void MakeZombie() const {
    kill(pid_, SIGKILL);
    siginfo_t ignored = {};
    EXPECT_EQ(waitid(P_PID, static_cast<id_t>(pid_), &ignored, WEXITED | WNOWAIT), 0);
  }
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

class Pipe {
 public:
  Pipe() {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    reader_ = UniqueFd(ends[0]);
    writer_ = UniqueFd(ends[1]);
  }
  // Async-signal-safe, for a forked child.
  void Send() const { (void)!write(writer_.get(), "x", 1); }
  // Waits for a byte, or until the last writer closes.
  void Receive() const {
    char byte = 0;
    (void)!read(reader_.get(), &byte, 1);
  }
  void CloseWriter() { writer_.Reset(-1); }

 private:
  UniqueFd reader_;
  UniqueFd writer_;
};

const std::string kSystemdPath = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + kPodInSlice +
                                 ".slice/cri-containerd-" + kId + ".scope";
const std::string kCgroupfsPath = "/kubepods/burstable/pod" + kPod + "/" + kId;

std::string Version2(const std::string& path) { return "0::" + path + "\n"; }
std::string Version1(const std::string& path) {
  return "11:memory:" + path + "\n4:cpu,cpuacct:" + path + "\n1:name=systemd:" + path + "\n0::/\n";
}

// A folder that looks like /proc, where the daemon is a service of the node.
class FakeProc {
 public:
  FakeProc() {
    char name[] = "/tmp/rnicd-test-XXXXXX";
    path_ = mkdtemp(name);
    Write("self", "11:memory:/system.slice/rnicd.service\n0::/system.slice/rnicd.service\n");
  }
  ~FakeProc() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }
  void Write(const std::string& process, const std::string& cgroups) const {
    std::filesystem::create_directory(path_ + "/" + process);
    std::ofstream(path_ + "/" + process + "/cgroup") << cgroups;
  }
  void Write(pid_t pid, const std::string& cgroups) const { Write(std::to_string(pid), cgroups); }

 private:
  std::string path_;
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
  EXPECT_TRUE(peer.process->HasExited(kTimeout));
}

// The socket lives on in a forked child; its objects are bound to the process that connected.
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
  EXPECT_TRUE(peer.process->HasExited(kTimeout));
}

TEST_P(PeerTest, AProcessThatIsGoneIsRefusedOrKnownToBeDead) {
  Child child([this] { listener_.Connect(); });
  const UniqueFd socket = listener_.Accept();
  child.Kill();
  const auto peer = IdentifyPeer(socket.get(), GetParam(), core::Role::kWorkload);
  if (peer.ok()) {
    EXPECT_TRUE(peer->process->HasExited(kTimeout));
  } else {
    EXPECT_EQ(peer.status().code(), absl::StatusCode::kUnauthenticated);
  }
}

// The socket outlives the process that connected: a grandchild that holds it cannot be identified by it.
TEST_P(PeerTest, ADeadProcessWhoseChildKeepsTheSocketIsRefused) {
  Pipe ready;
  Pipe lifeline;
  Child child([&] {
    listener_.Connect();
    if (fork() == 0) {
      lifeline.CloseWriter();
      ready.Send();
      lifeline.Receive();
      _exit(0);
    }
    lifeline.CloseWriter();
  });
  const UniqueFd socket = listener_.Accept();
  ready.Receive();
  child.MakeZombie();
  EXPECT_EQ(IdentifyPeer(socket.get(), GetParam(), core::Role::kWorkload).status().code(),
            absl::StatusCode::kUnauthenticated);
  child.Kill();
  EXPECT_EQ(IdentifyPeer(socket.get(), GetParam(), core::Role::kWorkload).status().code(),
            absl::StatusCode::kUnauthenticated);
  char byte = 0;
  EXPECT_EQ(recv(socket.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT), -1) << "no process holds the socket any more";
  EXPECT_EQ(errno, EAGAIN);
}

// For a first thread that has ended, control groups of version 1 show no container.
TEST_P(PeerTest, AProcessWithoutItsFirstThreadIsRefused) {
  Pipe leave;
  Child child([&] {
    listener_.Connect();
    std::thread([] {
      while (true) {
        pause();
      }
    }).detach();
    leave.Receive();
    syscall(SYS_exit, 0);
  });
  const UniqueFd socket = listener_.Accept();
  const Peer peer = Identify(socket);
  leave.Send();
  const auto deadline = std::chrono::steady_clock::now() + kTimeout;
  while (!peer.process->HasExited(std::chrono::milliseconds(1)) && std::chrono::steady_clock::now() < deadline) {
  }
  EXPECT_EQ(IdentifyPeer(socket.get(), GetParam(), core::Role::kWorkload).status().code(),
            absl::StatusCode::kUnauthenticated);
}

TEST_P(PeerTest, TheContainerIsThatOfTheProcessThatConnected) {
  const FakeProc proc;
  Child child([this] { listener_.Connect(); });
  const UniqueFd socket = listener_.Accept();
  proc.Write(getpid(), Version2("/"));
  proc.Write(child.pid(), Version2(kSystemdPath));
  const auto peer = IdentifyPeer(socket.get(), GetParam(), core::Role::kWorkload, proc.path());
  ASSERT_TRUE(peer.ok()) << peer.status();
  EXPECT_EQ(peer->caller.pid, child.pid());
  EXPECT_EQ(peer->caller.container, (core::Container{kPod, kId}));
}

TEST_P(PeerTest, ACallerWithAnUnknownContainerIsRefused) {
  const FakeProc proc;
  const UniqueFd ours(listener_.Connect());
  const UniqueFd socket = listener_.Accept();
  const auto identify = [&] { return IdentifyPeer(socket.get(), GetParam(), core::Role::kWorkload, proc.path()); };
  EXPECT_EQ(identify().status().code(), absl::StatusCode::kUnauthenticated) << "no file";
  proc.Write(getpid(), Version2("/kubepods.slice/kubepods-podx.slice"));
  EXPECT_EQ(identify().status().code(), absl::StatusCode::kUnauthenticated) << "no sound pod";
  proc.Write(getpid(), Version2("/system.slice/sshd.service"));
  EXPECT_TRUE(identify().ok()) << identify().status();
}

TEST_P(PeerTest, WithoutADescriptorLeftNobodyIsTakenForGone) {
  const UniqueFd ours(listener_.Connect());
  const UniqueFd socket = listener_.Accept();
  // First with enough descriptors: a sanitizer needs a pipe to look at objects of classes that it has not seen yet.
  ASSERT_TRUE(IdentifyPeer(socket.get(), GetParam(), core::Role::kWorkload).ok());
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  // Allows one more descriptor at a time: each place that needs one fails before the call succeeds.
  int lowest_free = dup(socket.get());
  close(lowest_free);
  int refused = 0;
  absl::StatusOr<Peer> peer = absl::UnknownError("not asked yet");
  for (rlim_t more = 0; !peer.ok() && more < 8; ++more) {
    const rlimit tight = {static_cast<rlim_t>(lowest_free) + more, before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &tight), 0);
    peer = IdentifyPeer(socket.get(), GetParam(), core::Role::kWorkload);
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    refused += absl::IsResourceExhausted(peer.status()) ? 1 : 0;
    EXPECT_TRUE(peer.ok() || absl::IsResourceExhausted(peer.status())) << peer.status() << " with " << more;
  }
  EXPECT_TRUE(peer.ok()) << peer.status();
  EXPECT_GE(refused, 2);
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

// Property 3: from a pid to its pod, in both versions of control groups and with both of kubelet's drivers.
TEST(ReadContainer, KnowsBothVersionsAndBothDrivers) {
  const FakeProc proc;
  pid_t pid = 1000;
  for (const std::string& cgroups :
       {Version1(kSystemdPath), Version1(kCgroupfsPath), Version2(kSystemdPath), Version2(kCgroupfsPath)}) {
    proc.Write(++pid, cgroups);
    const auto container = ReadContainer(proc.path(), pid);
    ASSERT_TRUE(container.ok()) << container.status() << cgroups;
    EXPECT_EQ(*container, (core::Container{kPod, kId})) << cgroups;
  }
}

TEST(ReadContainer, AProcessOfTheNodeIsInNone) {
  const FakeProc proc;
  proc.Write(1000, Version1("/user.slice/user-1000.slice/session-2.scope"));
  proc.Write(1001, Version2("/user.slice/user-1000.slice/session-2.scope"));
  for (const pid_t pid : {1000, 1001}) {
    const auto container = ReadContainer(proc.path(), pid);
    ASSERT_TRUE(container.ok()) << container.status();
    EXPECT_EQ(*container, core::Container{});
  }
}

TEST(ReadContainer, TheDaemonsOwnGroupsAreTakenForTheNode) {
  const FakeProc proc;
  const std::string node = "/docker/" + std::string(64, 'd');
  proc.Write("self", Version2(node + "/system.slice/rnicd.service"));
  proc.Write(1000, Version2(node + kCgroupfsPath));
  const auto container = ReadContainer(proc.path(), 1000);
  ASSERT_TRUE(container.ok()) << container.status();
  EXPECT_EQ(*container, (core::Container{kPod, kId}));
}

TEST(ReadContainer, WhatCannotBeReadOrUnderstoodNamesNobody) {
  const FakeProc proc;
  proc.Write(1000, "");
  proc.Write(1001, "not a line of a control group\n");
  proc.Write(1002, "2:cpu:" + kCgroupfsPath + "\n1:memory:/docker/" + std::string(64, 'b') + "\n");
  std::string too_long;
  while (too_long.size() <= (64 << 10)) {
    too_long += Version2(kCgroupfsPath);
  }
  proc.Write(1003, too_long);
  // 1004 does not exist.
  for (pid_t pid = 1000; pid <= 1004; ++pid) {
    EXPECT_EQ(ReadContainer(proc.path(), pid).status().code(), absl::StatusCode::kUnauthenticated) << pid;
  }
}

TEST(ReadContainer, WithoutOurOwnGroupsNobodyIsNamed) {
  const FakeProc proc;
  proc.Write(1000, Version2(kCgroupfsPath));
  EXPECT_TRUE(ReadContainer(proc.path(), 1000).ok());
  std::filesystem::remove_all(proc.path() + "/self");
  EXPECT_EQ(ReadContainer(proc.path(), 1000).status().code(), absl::StatusCode::kUnauthenticated);
}

TEST(IdentityRung, ThisKernelHasOne) {
  const auto rung = ProbeIdentityRung();
  ASSERT_TRUE(rung.ok()) << rung.status();
  EXPECT_STREQ(IdentityRungName(IdentityRung::kPeerPidfd), "peer_pidfd");
  EXPECT_STREQ(IdentityRungName(IdentityRung::kPidfdOpen), "pidfd_open");
}

}  // namespace
}  // namespace rnicd::transport
