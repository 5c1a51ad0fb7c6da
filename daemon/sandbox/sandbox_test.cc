#include "daemon/sandbox/sandbox.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <algorithm>
#include <csignal>
#include <iterator>
#include <ostream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "daemon/sandbox/sandboxed_child_test.h"
#include "daemon/sandbox/system_calls.h"

namespace rnicd::sandbox {
namespace {

// Calls that a sanitizer must make to start processes and look into others; the tests skip them then.
bool IsForSanitizers(std::string_view call) {
  const auto groups = AllowedCalls();
  return BuiltWithSanitizer() && std::any_of(groups.begin(), groups.end(), [&](const CallGroup& group) {
           return std::find(group.calls.begin(), group.calls.end(), call) != group.calls.end();
         });
}

// --- Calls that never happen --------------------------------------------------------------------------------------

// Programs, processes, other processes' memory and signals; users and privileges; namespaces, mounts and file systems;
// kernel internals; the machine; other ways to do the same; and files that the daemon must not touch.
constexpr char kCallsThatKill[] =
    "execve execveat fork vfork wait4 waitid ptrace kill tkill rt_sigqueueinfo rt_tgsigqueueinfo pidfd_send_signal "
    "pidfd_getfd kcmp process_vm_readv process_vm_writev process_madvise process_mrelease get_robust_list "
    "personality setuid setgid setreuid setregid setresuid setresgid setfsuid setfsgid setgroups capset seccomp "
    "setns unshare mount umount2 pivot_root chroot chdir fchdir open_tree move_mount mount_setattr fsopen fsconfig "
    "fsmount fspick quotactl quotactl_fd swapon swapoff bpf perf_event_open io_uring_setup io_uring_enter "
    "io_uring_register userfaultfd keyctl add_key request_key init_module finit_module delete_module kexec_load "
    "kexec_file_load reboot iopl ioperm syslog acct settimeofday clock_settime clock_adjtime adjtimex sethostname "
    "setdomainname vhangup lookup_dcookie fanotify_init memfd_secret modify_ldt open_by_handle_at name_to_handle_at "
    "mknod mknodat symlink symlinkat link linkat chown fchown lchown fchownat truncate setxattr shmget shmat msgget "
    "semget mq_open pkey_mprotect remap_file_pages migrate_pages move_pages set_mempolicy "
    "sched_setscheduler sched_setattr ioprio_set setsid setpgid timer_create io_setup splice vmsplice sendmmsg";

std::vector<std::string> CallsThatKill() {
  std::istringstream names(kCallsThatKill);
  std::vector<std::string> calls(std::istream_iterator<std::string>(names), {});
  std::erase_if(calls, [](const std::string& call) { return IsForSanitizers(call); });
  return calls;
}

class CallsThatNeverHappen : public testing::TestWithParam<std::string> {};

TEST_P(CallsThatNeverHappen, EndTheProcess) {
  const int number = seccomp_syscall_resolve_name(GetParam().c_str());
  ASSERT_GE(number, 0);
  const ChildEnd end = InSandbox({}, [&](int) {
    syscall(number, 0, 0, 0, 0, 0, 0);
    return kWasCarriedOut;
  });
  EXPECT_EQ(end.signal, SIGSYS) << "exit code " << end.exit_code << " " << end.output;
}

INSTANTIATE_TEST_SUITE_P(Sandbox, CallsThatNeverHappen, testing::ValuesIn(CallsThatKill()),
                         [](const auto& test) { return test.param; });

// --- Calls that depend on their arguments -------------------------------------------------------------------------

struct ForbiddenUse {
  const char* name;
  const char* call;
  std::vector<long> arguments;
};

void PrintTo(const ForbiddenUse& use, std::ostream* out) { *out << use.name; }

std::vector<ForbiddenUse> UsesThatKill() {
  std::vector<ForbiddenUse> uses = {
      {"AProcess", "clone", {SIGCHLD}},
      {"AProcessInTheSameMemory", "clone", {CLONE_VM | CLONE_FILES | CLONE_FS}},
      {"AThreadInAUserNamespace", "clone", {CLONE_THREAD | CLONE_SIGHAND | CLONE_VM | CLONE_NEWUSER}},
      {"ASignalToTheParent", "tgkill", {getpid(), getpid(), 0}},
      {"LimitsOfTheParent", "prlimit64", {getpid(), RLIMIT_CORE, 0, 0}},
      {"ThePriorityOfTheParent", "setpriority", {PRIO_PROCESS, getppid(), 1}},
      {"ThePriorityOfAUser", "setpriority", {PRIO_USER, 0, 1}},
      {"ADumpableProcess", "prctl", {PR_SET_DUMPABLE, 1}},
      {"SecureBits", "prctl", {PR_SET_SECUREBITS, 0}},
      {"APacketSocket", "socket", {AF_PACKET, SOCK_RAW, 0}},
      {"AKernelCryptoSocket", "socket", {AF_ALG, SOCK_SEQPACKET, 0}},
      {"AVirtualMachineSocket", "socket", {AF_VSOCK, SOCK_STREAM, 0}},
      {"AnotherSocketPair", "socketpair", {AF_TIPC, SOCK_STREAM, 0, 0}},
      {"TheOwnerOfADescriptorsSignals", "fcntl", {0, F_SETOWN, 1}},
      {"TheSignalOfADescriptor", "fcntl", {0, F_SETSIG, SIGKILL}},
      {"TypingIntoATerminal", "ioctl", {0, TIOCSTI, 0}},
      {"TheOwnerOfASocketsSignals", "ioctl", {0, FIOSETOWN, 0}},
      {"WritableCode", "mmap", {0, kPageBytes, PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0}},
      {"CodeFromNowhere", "mmap", {0, kPageBytes, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0}},
      {"WritableCodeOfAFile", "mmap", {0, kPageBytes, PROT_WRITE | PROT_EXEC, MAP_SHARED, 0, 0}},
      {"DataThatBecomesCode", "mprotect", {0, kPageBytes, PROT_READ | PROT_EXEC}},
  };
  std::erase_if(uses, [](const ForbiddenUse& use) { return IsForSanitizers(use.call); });
  return uses;
}

class UsesThatNeverHappen : public testing::TestWithParam<ForbiddenUse> {};

TEST_P(UsesThatNeverHappen, EndTheProcess) {
  const int number = seccomp_syscall_resolve_name(GetParam().call);
  std::vector<long> arguments = GetParam().arguments;
  arguments.resize(6);
  const ChildEnd end = InSandbox({}, [&](int) {
    syscall(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
    return kWasCarriedOut;
  });
  EXPECT_EQ(end.signal, SIGSYS) << "exit code " << end.exit_code << " " << end.output;
}

INSTANTIATE_TEST_SUITE_P(Sandbox, UsesThatNeverHappen, testing::ValuesIn(UsesThatKill()),
                         [](const auto& test) { return std::string(test.param.name); });

#ifdef __x86_64__
TEST(Sandbox, CallsOfTheX32InterfaceEndTheProcess) {
  constexpr long kX32Bit = 0x40000000;
  const ChildEnd end = InSandbox({}, [](int) {
    syscall(kX32Bit + SYS_getpid);
    return kWasCarriedOut;
  });
  EXPECT_EQ(end.signal, SIGSYS) << "exit code " << end.exit_code << " " << end.output;
}
#endif

// --- Calls that return an errno -----------------------------------------------------------------------------------

// The errno that a call returns in the sandbox; 0 when it was executed.
int ErrnoOf(long number) {
  const ChildEnd end = InSandbox({}, [&](int) { return syscall(number, 0, 0, 0, 0, 0, 0) == -1 ? errno : 0; });
  EXPECT_EQ(end.signal, 0) << end.output;
  return end.exit_code;
}

TEST(Sandbox, ThreadsAreNotStartedWithACallThatCannotBeChecked) { EXPECT_EQ(ErrnoOf(SYS_clone3), ENOSYS); }

TEST(Sandbox, ItMakesNoConnections) { EXPECT_EQ(ErrnoOf(SYS_connect), EACCES); }

TEST(Sandbox, CallsNewerThanTheListAreMissing) {
  EXPECT_EQ(ErrnoOf(kFirstNewerCall), ENOSYS);
  EXPECT_EQ(ErrnoOf(kNewerCallsEnd - 1), ENOSYS);
}

// --- Ways in ------------------------------------------------------------------------------------------------------

TEST(Sandbox, ASecondThreadKeepsItOut) {
  const ChildEnd end = Child([](int pipe) {
                         std::thread other([] { pause(); });
                         other.detach();
                         const absl::Status entered = EnterSandbox({}).status();
                         WriteText(pipe, std::string(entered.message()));
                         return entered.code() == absl::StatusCode::kFailedPrecondition ? 0 : 1;
                       }).End();
  EXPECT_EQ(end.exit_code, 0);
  EXPECT_EQ(end.output, "sandbox: there are 2 threads already, and all but one would keep their privileges");
}

TEST(Sandbox, ASecondTimeEndsTheProcess) {
  const ChildEnd end = InSandbox({}, [](int) {
    (void)EnterSandbox({});
    return kWasCarriedOut;
  });
  EXPECT_EQ(end.signal, BuiltWithSanitizer() ? end.signal : SIGSYS);
  EXPECT_NE(end.exit_code, kWasCarriedOut);
}

TEST(Sandbox, AThreadInheritsAll) {
  const ChildEnd end = InSandbox({}, [](int) {
    std::thread([] { syscall(SYS_setuid, 0); }).join();
    return kWasCarriedOut;
  });
  EXPECT_EQ(end.signal, SIGSYS);
}

TEST(Sandbox, LogCarriesForeignCallsOut) {
  const ChildEnd end = InSandbox({.filter = SystemCallFilter::kLog}, [](int) {
    const bool has_filter = prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == 2;
    return has_filter && syscall(SYS_sched_get_priority_max, 0) == 0 ? kWasCarriedOut : 1;
  });
  EXPECT_EQ(end.exit_code, kWasCarriedOut) << end.output << " signal " << end.signal;
}

TEST(Sandbox, OffLoadsNoFilterAndStillGainsNothing) {
  const ChildEnd end = InSandbox({.filter = SystemCallFilter::kOff}, [](int) {
    const bool no_filter = prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == 0;
    return no_filter && prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? kWasCarriedOut : 1;
  });
  EXPECT_EQ(end.exit_code, kWasCarriedOut) << end.output << " signal " << end.signal;
}

TEST(Sandbox, FiltersHaveNames) {
  EXPECT_EQ(SystemCallFilterFromName("enforce"), SystemCallFilter::kEnforce);
  EXPECT_EQ(SystemCallFilterFromName("log"), SystemCallFilter::kLog);
  EXPECT_EQ(SystemCallFilterFromName("off"), SystemCallFilter::kOff);
  EXPECT_EQ(SystemCallFilterFromName("Enforce"), std::nullopt);
  EXPECT_EQ(SystemCallFilterFromName(""), std::nullopt);
}

}  // namespace
}  // namespace rnicd::sandbox
