// The daemon's normal operations still work in the sandbox: those of its start before it serves, the others then too.
#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/vfs.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/files/sent_descriptors_linux.h"
#include "daemon/sandbox/sandboxed_child_test.h"

namespace rnicd::sandbox {
namespace {

// Each expects that the child exits with 0, which it does when `work` returns true.
void ExpectWorksAtStart(const std::function<bool()>& work) {
  const ChildEnd end = InSandbox({}, [&](int) { return work() ? 0 : 1; });
  EXPECT_EQ(end.exit_code, 0) << end.output << " signal " << end.signal;
}

void ExpectWorks(const std::function<bool()>& work, const SandboxOptions& options = {}) {
  ExpectWorksAtStart(work);
  const ChildEnd end = WhenServing(options, [&](int) { return work() ? 0 : 1; });
  EXPECT_EQ(end.exit_code, 0) << end.output << " when serving, signal " << end.signal;
}

union RoomForOne {
  char bytes[CMSG_SPACE(sizeof(int))];
  cmsghdr alignment;
};

bool SendDescriptor(int socket, int fd) {
  RoomForOne control = {};
  char byte = 'x';
  iovec part = {.iov_base = &byte, .iov_len = 1};
  msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof(control)};
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &fd, sizeof(fd));
  return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
}

UniqueFd ReceiveDescriptor(int socket) {
  RoomForOne control = {};
  char byte = 0;
  iovec part = {.iov_base = &byte, .iov_len = 1};
  msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof(control)};
  if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) != 1) {
    return {};
  }
  std::vector<UniqueFd> received = TakeDescriptors(message);
  return received.empty() ? UniqueFd() : std::move(received.front());
}

TEST(DailyWork, ThreadsStartAllocateAndEnd) {
  ExpectWorks([] {
    std::atomic<size_t> sum = 0;
    std::vector<std::thread> threads;
    for (int number = 0; number < 8; ++number) {
      threads.emplace_back([&] {
        pthread_setname_np(pthread_self(), "worker");
        sum += std::vector<char>(1 << 20, 1).size();
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    return sum == 8u << 20;
  });
}

TEST(DailyWork, MemoryFilesAreMadeSealedMappedAndMovedTogether) {
  ExpectWorks([] {
    constexpr size_t kSize = 1 << 16;
    const UniqueFd file(memfd_create("memory", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (ftruncate(file.get(), kSize) != 0 || fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) {
      return false;
    }
    void* const first = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    void* const room = mmap(nullptr, kSize, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    // A second mapping of the same pages, as the verbs provider makes it.
    return first != MAP_FAILED && madvise(first, kSize, MADV_POPULATE_WRITE) == 0 &&
           mremap(first, 0, kSize, MREMAP_MAYMOVE | MREMAP_FIXED, room) == room && munmap(first, kSize) == 0;
  });
}

// Its registration is a command of the card, as any other.
TEST(DailyWork, ADescriptorIsAskedWhetherItIsADmabufAndOfWhatSize) {
  ExpectWorks([] {
    const UniqueFd file(memfd_create("dmabuf", MFD_CLOEXEC));
    struct statfs filesystem = {};
    struct stat facts = {};
    utsname kernel = {};
    return fstatfs(file.get(), &filesystem) == 0 && fstat(file.get(), &facts) == 0 &&
           lseek(file.get(), 0, SEEK_END) == 0 && uname(&kernel) == 0;
  });
}

TEST(DailyWork, SocketsAppearInTheirDirectory) {
  const std::string folder = testing::TempDir() + "rnicd-sandbox-" + std::to_string(getpid());
  ExpectWorks([&] {
    sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = {}};
    (folder + "/x.new").copy(address.sun_path, sizeof(address.sun_path) - 1);
    const UniqueFd listener(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (mkdir(folder.c_str(), 0700) != 0 || chmod(folder.c_str(), 0755) != 0) {
      return false;
    }
    const UniqueFd lock(open((folder + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
      return false;
    }
    const UniqueFd file(open(address.sun_path, O_PATH | O_NOFOLLOW | O_CLOEXEC));
    return flock(lock.get(), LOCK_EX | LOCK_NB) == 0 &&
           chmod(("/proc/self/fd/" + std::to_string(file.get())).c_str(), 0666) == 0 &&
           listen(listener.get(), 16) == 0 && faccessat(AT_FDCWD, folder.c_str(), W_OK, AT_EACCESS) == 0 &&
           rename(address.sun_path, (folder + "/x").c_str()) == 0 && unlink((folder + "/x").c_str()) == 0 &&
           unlink((folder + "/lock").c_str()) == 0 && unlinkat(AT_FDCWD, folder.c_str(), AT_REMOVEDIR) == 0;
  });
}

TEST(DailyWork, CallersAreAcceptedAndNamed) {
  ExpectWorks([] {
    int ends[2] = {-1, -1};
    ucred peer = {};
    socklen_t size = sizeof(peer);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0 ||
        getsockopt(ends[0], SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
      return false;
    }
    const UniqueFd process(static_cast<int>(syscall(SYS_pidfd_open, peer.pid, 0)));
    std::string word;
    std::ifstream("/proc/self/fdinfo/" + std::to_string(process.get())) >> word;
    std::string stat;
    std::getline(std::ifstream("/proc/" + std::to_string(peer.pid) + "/stat"), stat);
    std::string cgroup;
    std::getline(std::ifstream("/proc/" + std::to_string(peer.pid) + "/cgroup"), cgroup);
    return process.valid() && word == "pos:" && !stat.empty() && !cgroup.empty();
  });
}

TEST(DailyWork, DescriptorsArriveAndAreWaitedFor) {
  ExpectWorks([] {
    const UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
    const UniqueFd wake_up(eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK));
    const UniqueFd timer(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC));
    const UniqueFd folder(inotify_init1(IN_CLOEXEC));
    epoll_event event = {.events = EPOLLIN, .data = {}};
    const itimerspec soon = {.it_interval = {}, .it_value = {.tv_sec = 0, .tv_nsec = 1}};
    return epoll_ctl(epoll.get(), EPOLL_CTL_ADD, wake_up.get(), &event) == 0 &&
           epoll_wait(epoll.get(), &event, 1, 1000) == 1 && timerfd_settime(timer.get(), 0, &soon, nullptr) == 0 &&
           inotify_add_watch(folder.get(), "/dev", IN_CREATE) >= 0;
  });
}

TEST(DailyWork, TheMetricsPageListensAndTheKernelIsAskedForCards) {
  ExpectWorksAtStart([] {
    const UniqueFd page(socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in loopback = {};
    loopback.sin_family = AF_INET;
    loopback.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const UniqueFd cards(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA));
    return bind(page.get(), reinterpret_cast<const sockaddr*>(&loopback), sizeof(loopback)) == 0 &&
           listen(page.get(), 16) == 0 && (cards.valid() || errno == EPROTONOSUPPORT) && if_nametoindex("lo") != 0;
  });
}

TEST(DailyWork, CardsAreLookedForWhenOneIsOpened) {
  ExpectWorks(
      [] {
        sockaddr_nl kernel = {};
        kernel.nl_family = AF_NETLINK;
        const UniqueFd cards(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
        return bind(cards.get(), reinterpret_cast<const sockaddr*>(&kernel), sizeof(kernel)) == 0;
      },
      {.looks_for_cards = true});
}

// libibverbs loads its drivers when cards are listed.
TEST(DailyWork, LibrariesAreLoadedLate) {
  ExpectWorksAtStart([] { return dlopen("libresolv.so.2", RTLD_NOW) != nullptr; });
}

TEST(DailyWork, FoldersAreCountedAndLimitsRaised) {
  ExpectWorks([] {
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      count += entry.path().empty() ? 0 : 1;
    }
    rlimit limit = {};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
      return false;
    }
    limit.rlim_cur = limit.rlim_max;
    return count > 0 && setrlimit(RLIMIT_NOFILE, &limit) == 0;
  });
}

TEST(DailyWork, FilesAndFoldersAreMadeWithTheirModes) {
  const std::string folder = testing::TempDir() + "rnicd-serving-" + std::to_string(getpid());
  ExpectWorks([&] {
    const std::string path = folder + "/file";
    const bool made = mkdir(folder.c_str(), 0777) == 0 && chmod(folder.c_str(), 0755) == 0;
    const UniqueFd file(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    return made && fchmod(file.get(), 0640) == 0 && unlink(path.c_str()) == 0 &&
           unlinkat(AT_FDCWD, folder.c_str(), AT_REMOVEDIR) == 0;
  });
}

TEST(DailyWork, BytesAreSentToPeers) {
  ExpectWorks([] {
    int ends[2] = {-1, -1};
    char byte = 'x';
    iovec bytes = {.iov_base = &byte, .iov_len = 1};
    msghdr message = {};
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;
    return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0 && send(ends[0], &byte, 1, 0) == 1 &&
           sendmsg(ends[0], &message, MSG_NOSIGNAL) == 1 && recv(ends[1], &byte, 1, 0) == 1;
  });
}

// As a daemon does that hands its sockets over to its heir.
TEST(DailyWork, AListenerAndALockAreHandedOver) {
  const std::string path = testing::TempDir() + "rnicd-handover-" + std::to_string(getpid());
  ExpectWorks([&] {
    int ends[2] = {-1, -1};
    const UniqueFd lock(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    const UniqueFd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_un any = {.sun_family = AF_UNIX, .sun_path = {}};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0 || flock(lock.get(), LOCK_EX) != 0 ||
        bind(listener.get(), reinterpret_cast<const sockaddr*>(&any), sizeof(any.sun_family)) != 0) {
      return false;
    }
    for (const int fd : {listener.get(), lock.get()}) {
      const UniqueFd copy(fcntl(fd, F_DUPFD_CLOEXEC, 0));
      if (!SendDescriptor(ends[0], copy.get())) {
        return false;
      }
    }
    const UniqueFd their_listener(ReceiveDescriptor(ends[1]));
    const UniqueFd their_lock(ReceiveDescriptor(ends[1]));
    return listen(their_listener.get(), 16) == 0 && flock(their_lock.get(), LOCK_EX | LOCK_NB) == 0 &&
           unlink(path.c_str()) == 0;
  });
}

// The C library looks for its unwinder then, and finds the one that the daemon is linked with.
TEST(DailyWork, AThreadThatEndsItselfIsUnwound) {
  ExpectWorks([] {
    pthread_t thread = {};
    const auto end = [](void*) -> void* { pthread_exit(nullptr); };
    return pthread_create(&thread, nullptr, end, nullptr) == 0 && pthread_join(thread, nullptr) == 0;
  });
}

TEST(DailyWork, AnAbortIsAnAbort) {
  const auto abort = [](int) {
    std::abort();
    return 0;
  };
  EXPECT_EQ(InSandbox({}, abort).signal, SIGABRT);
  EXPECT_EQ(WhenServing({}, abort).signal, SIGABRT);
}

// True when the process waits in the kernel: field 3 of /proc/<pid>/stat.
bool Sleeps(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  const size_t name_end = line.rfind(')');
  return name_end != std::string::npos && line.substr(name_end + 2, 1) == "S";
}

// The kernel resumes a call interrupted by a stop with a system call of its own.
TEST(DailyWork, AStoppedProcessGoesOn) {
  Child child([](int pipe) {
    ServeOrExit({}, pipe);
    WriteText(pipe, "waiting");
    return poll(nullptr, 0, 500);
  });
  ASSERT_TRUE(child.WaitForOutput());
  // If the child ends instead, the following steps fail.
  siginfo_t end_of_child = {};
  while (!Sleeps(child.pid()) && end_of_child.si_pid == 0 &&
         waitid(P_PID, static_cast<id_t>(child.pid()), &end_of_child, WEXITED | WNOHANG | WNOWAIT) == 0) {
    std::this_thread::yield();
  }
  ASSERT_EQ(kill(child.pid(), SIGSTOP), 0);
  int status = 0;
  ASSERT_EQ(waitpid(child.pid(), &status, WUNTRACED), child.pid());
  ASSERT_TRUE(WIFSTOPPED(status));
  ASSERT_EQ(kill(child.pid(), SIGCONT), 0);
  const ChildEnd end = child.End();
  EXPECT_EQ(end.exit_code, 0) << end.output << " signal " << end.signal;
}

}  // namespace
}  // namespace rnicd::sandbox
