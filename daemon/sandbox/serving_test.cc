// What a daemon that serves may no longer do.
#include "daemon/sandbox/serving.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include <algorithm>
#include <csignal>
#include <latch>
#include <ostream>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "daemon/sandbox/sandboxed_child_test.h"
#include "daemon/sandbox/system_calls.h"

namespace rnicd::sandbox {
namespace {

struct UseAtStart {
  const char* name;
  const char* call;
  std::vector<long> arguments;
  bool looks_for_cards = false;
};

void PrintTo(const UseAtStart& use, std::ostream* out) { *out << use.name; }

long Address(const void* bytes) { return reinterpret_cast<long>(bytes); }

std::vector<UseAtStart> UsesOfTheStart() {
  static const sockaddr_in kLoopback = [] {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }();
  static const char kPath[] = "/nonexistent/file";
  const long path = Address(kPath);
  std::vector<UseAtStart> uses = {
      {"AnInternetSocket", "socket", {AF_INET, SOCK_STREAM, 0}},
      {"ADatagramSocket", "socket", {AF_INET, SOCK_DGRAM, 0}},
      {"AnInternetSocketOfVersion6", "socket", {AF_INET6, SOCK_STREAM, 0}},
      {"AQuestionToTheKernelsNetwork", "socket", {AF_NETLINK, SOCK_RAW, 0}},
      {"AnInternetSocketBesideCards", "socket", {AF_INET, SOCK_STREAM, 0}, true},
      {"APairThatSendsToOthers", "socketpair", {AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, 0}},
      {"ARawPairThatSendsToOthers", "socketpair", {AF_UNIX, SOCK_RAW, 0, 0}},
      {"ADestination", "sendto", {-1, path, 1, 0, Address(&kLoopback), sizeof(kLoopback)}},
      {"ADestinationInTheUpperHalf", "sendto", {-1, path, 1, 0, 1L << 40, 0}},
      {"AConnectionMadeBySending", "sendto", {-1, path, 1, MSG_FASTOPEN, 0, 0}},
      {"AConnectionMadeBySendingAMessage", "sendmsg", {-1, 0, MSG_FASTOPEN}},
      {"AFileThatRunsAsItsOwner", "open", {path, O_WRONLY | O_CREAT, 04755}},
      {"AFileThatRunsAsItsGroup", "open", {path, O_WRONLY | O_CREAT, 02755}},
      {"AFileBesideThatRunsAsItsOwner", "openat", {AT_FDCWD, path, O_WRONLY | O_CREAT, 04755}},
      {"ATemporaryFileThatRunsAsItsGroup", "openat", {AT_FDCWD, path, O_WRONLY | O_TMPFILE, 02755}},
      {"AModeOfItsOwner", "chmod", {path, 04755}},
      {"AModeOfItsGroup", "chmod", {path, 02755}},
      {"AModeOfAnOpenFile", "fchmod", {-1, S_ISUID}},
      {"AModeOfAFileBeside", "fchmodat", {AT_FDCWD, path, S_ISGID | 0755}},
      {"AFolderOfItsGroup", "mkdir", {path, 02755}},
      {"AFolderBesideOfItsGroup", "mkdirat", {AT_FDCWD, path, 02755}},
      {"CodeOfAFile", "mmap", {0, kPageBytes, PROT_READ | PROT_EXEC, MAP_PRIVATE, -1, 0}},
      {"CodeOfNothing", "mmap", {0, kPageBytes, PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0}},
      {"DataThatBecomesCode", "mprotect", {0, kPageBytes, PROT_READ | PROT_EXEC}},
      {"AnotherFilter", "seccomp", {SECCOMP_SET_MODE_FILTER, 0, 0}},
  };
  std::erase_if(uses, [](const UseAtStart& use) {
    const std::string_view call = use.call;
    return BuiltWithSanitizer() && (call == "mmap" || call == "mprotect");
  });
  return uses;
}

class ServingNeverNeeds : public testing::TestWithParam<UseAtStart> {};

TEST_P(ServingNeverNeeds, AndTheProcessEnds) {
  const int number = seccomp_syscall_resolve_name(GetParam().call);
  std::vector<long> arguments = GetParam().arguments;
  arguments.resize(6);
  const ChildEnd end = WhenServing({.looks_for_cards = GetParam().looks_for_cards}, [&](int) {
    syscall(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
    return kWasCarriedOut;
  });
  EXPECT_EQ(end.signal, SIGSYS) << "exit code " << end.exit_code << " " << end.output;
}

INSTANTIATE_TEST_SUITE_P(Sandbox, ServingNeverNeeds, testing::ValuesIn(UsesOfTheStart()),
                         [](const auto& test) { return std::string(test.param.name); });

// A library that logs to the system continues without it.
TEST(Serving, ADatagramSocketOfThisMachineIsRefused) {
  for (const int type : {int{SOCK_DGRAM}, int{SOCK_RAW}, SOCK_DGRAM | SOCK_CLOEXEC}) {
    const ChildEnd end =
        WhenServing({}, [&](int) { return socket(AF_UNIX, type, 0) == -1 && errno == EACCES ? 0 : 1; });
    EXPECT_EQ(end.exit_code, 0) << type << ": " << end.output << " signal " << end.signal;
  }
}

// Such a socket is made when one was removed. It must not send what a socket with a peer does not.
TEST(Serving, ASocketOfThisMachineReachesNobody) {
  for (const int type : {int{SOCK_STREAM}, int{SOCK_SEQPACKET}}) {
    const ChildEnd end = WhenServing({}, [&](int) {
      const UniqueFd made(socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
      sockaddr_un log = {.sun_family = AF_UNIX, .sun_path = "/dev/log"};
      char byte = 'x';
      iovec bytes = {.iov_base = &byte, .iov_len = 1};
      msghdr message = {};
      message.msg_name = &log;
      message.msg_namelen = sizeof(log);
      message.msg_iov = &bytes;
      message.msg_iovlen = 1;
      const bool sent = sendmsg(made.get(), &message, MSG_NOSIGNAL) >= 0;
      const int error = errno;
      const bool connected = connect(made.get(), reinterpret_cast<const sockaddr*>(&log), sizeof(log)) == 0;
      return made.valid() && !sent && (error == EOPNOTSUPP || error == ENOTCONN) && !connected && errno == EACCES ? 0
                                                                                                                  : 1;
    });
    EXPECT_EQ(end.exit_code, 0) << type << ": " << end.output << " signal " << end.signal;
  }
}

// A memory file with a program in it is neither mapped as code nor executed.
TEST(Serving, CodeInAMemoryFileDoesNotRun) {
  const auto code = [](int) {
    const UniqueFd file(memfd_create("code", MFD_CLOEXEC));
    const bool long_enough = ftruncate(file.get(), kPageBytes) == 0;
    void* const mapped = mmap(nullptr, kPageBytes, PROT_READ | PROT_EXEC, MAP_PRIVATE, file.get(), 0);
    return long_enough && mapped != MAP_FAILED ? kWasCarriedOut : 1;
  };
  EXPECT_EQ(InSandbox({}, code).exit_code, kWasCarriedOut) << "the start loads libraries in this way";
  const ChildEnd end = WhenServing({}, code);
  EXPECT_EQ(end.signal, BuiltWithSanitizer() ? 0 : SIGSYS) << "exit code " << end.exit_code << " " << end.output;
}

// A listening socket that was shut down could otherwise be connected to anything.
TEST(Serving, ASocketOfTheStartIsNotConnected) {
  const ChildEnd end =
      Child([](int pipe) {
        EnterOrExit({}, pipe);
        sockaddr_in address = {};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        const auto* const raw = reinterpret_cast<const sockaddr*>(&address);
        const UniqueFd page(socket(AF_INET, SOCK_STREAM, 0));
        if (bind(page.get(), raw, sizeof(address)) != 0 || listen(page.get(), 1) != 0 || !NarrowSandbox({}).ok() ||
            shutdown(page.get(), SHUT_RDWR) != 0 || connect(page.get(), raw, sizeof(address)) == 0 || errno != EACCES) {
          return 1;
        }
        sendto(page.get(), "x", 1, MSG_NOSIGNAL, raw, sizeof(address));
        return kWasCarriedOut;
      }).End();
  EXPECT_EQ(end.signal, SIGSYS) << "exit code " << end.exit_code << " " << end.output;
}

TEST(Serving, HoldsForThreadsThatRanBefore) {
  const ChildEnd end = Child([](int pipe) {
                         EnterOrExit({}, pipe);
                         std::latch narrowed(1);
                         std::thread earlier([&] {
                           narrowed.wait();
                           socket(AF_INET, SOCK_STREAM, 0);
                         });
                         if (!NarrowSandbox({}).ok()) {
                           _exit(kDidNotEnter);
                         }
                         narrowed.count_down();
                         earlier.join();
                         return kWasCarriedOut;
                       }).End();
  EXPECT_EQ(end.signal, SIGSYS) << "exit code " << end.exit_code << " " << end.output;
}

TEST(Serving, LogCarriesRefusedUsesOut) {
  const ChildEnd end = WhenServing({.filter = SystemCallFilter::kLog}, [](int) {
    return UniqueFd(socket(AF_INET, SOCK_STREAM, 0)).valid() ? kWasCarriedOut : 1;
  });
  EXPECT_EQ(end.exit_code, kWasCarriedOut) << end.output << " signal " << end.signal;
}

TEST(Serving, OffLoadsNoSecondFilter) {
  const ChildEnd end = WhenServing({.filter = SystemCallFilter::kOff},
                                   [](int) { return prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == 0 ? kWasCarriedOut : 1; });
  EXPECT_EQ(end.exit_code, kWasCarriedOut) << end.output << " signal " << end.signal;
}

// --- the list -----------------------------------------------------------------------------------------------------

// A misspelled name would be skipped, and a call that the first filter refuses needs no rule here.
TEST(RefusedWhenServing, NamesCallsThatTheFirstFilterAllows) {
  std::set<std::string_view> allowed;
  for (const CallGroup& group : AllowedCalls()) {
    allowed.insert(group.calls.begin(), group.calls.end());
  }
  for (const CallRule& rule : AllowedByArguments(1)) {
    allowed.insert(rule.call);
  }
  for (const RefusedUse& use : RefusedWhenServing(false)) {
    EXPECT_TRUE(allowed.contains(use.call)) << use.call;
    EXPECT_NE(std::string_view(use.because), "") << use.call;
  }
}

TEST(RefusedWhenServing, HasATestOfEachCall) {
  std::set<std::string_view> tested = {"socket"};
  for (const UseAtStart& use : UsesOfTheStart()) {
    tested.insert(use.call);
  }
  for (const RefusedUse& use : RefusedWhenServing(false)) {
    EXPECT_TRUE(tested.contains(use.call)) << use.call;
  }
}

TEST(RefusedWhenServing, HasConditionsThatAValueCanMeet) {
  for (const RefusedUse& use : RefusedWhenServing(true)) {
    for (const ArgumentBits& bits : use.conditions) {
      EXPECT_EQ(bits.value & ~bits.mask, 0u) << use.call;
      EXPECT_NE(bits.mask, 0u) << use.call;
      EXPECT_TRUE(!bits.differs || bits.mask == ~uint64_t{0}) << use.call;
    }
  }
}

}  // namespace
}  // namespace rnicd::sandbox
