#include "daemon/sandbox/system_calls.h"

#include <asm/ioctls.h>
#include <asm/termbits.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <initializer_list>
#include <string_view>

#include "kernel/rnicd_fr/rnicd_fr.h"

// Works with both compilers: gcc defines the first two, clang has the features.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define RNICD_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define RNICD_SANITIZED 1
#endif
#endif
#ifndef RNICD_SANITIZED
#define RNICD_SANITIZED 0
#endif

namespace rnicd::sandbox {
namespace {

constexpr const char* kMemory[] = {"brk", "fallocate", "madvise", "mbind", "memfd_create", "mremap", "munmap"};

// "restart_syscall" is made when a stopped process continues. "rseq" and "set_robust_list" are the first calls of a new
// thread.
constexpr const char* kThreads[] = {"exit",
                                    "exit_group",
                                    "futex",
                                    "futex_waitv",
                                    "getcpu",
                                    "gettid",
                                    "restart_syscall",
                                    "rseq",
                                    "rt_sigaction",
                                    "rt_sigprocmask",
                                    "rt_sigreturn",
                                    "rt_sigtimedwait",
                                    "sched_getaffinity",
                                    "sched_getparam",
                                    "sched_getscheduler",
                                    "sched_yield",
                                    "set_robust_list"};

// Most of these are served by the vDSO, but not with every clock source and not on every machine.
constexpr const char* kTime[] = {"clock_getres", "clock_gettime", "clock_nanosleep",
                                 "gettimeofday", "nanosleep",     "time"};

constexpr const char* kQuestions[] = {"getegid",   "geteuid",   "getgid",    "getpid", "getppid", "getrandom",
                                      "getresgid", "getresuid", "getrusage", "getuid", "sysinfo", "uname"};

// The operators' and workloads' sockets, the metrics page, and the kernel's netlink, where libibverbs looks for cards.
constexpr const char* kSockets[] = {"accept",     "accept4",    "bind",     "getpeername", "getsockname",
                                    "getsockopt", "listen",     "recvfrom", "recvmsg",     "sendmsg",
                                    "sendto",     "setsockopt", "shutdown"};

// libibverbs waits with inotify and a timer for a device file that does not exist yet.
constexpr const char* kWaiting[] = {"epoll_create",
                                    "epoll_create1",
                                    "epoll_ctl",
                                    "epoll_pwait",
                                    "epoll_pwait2",
                                    "epoll_wait",
                                    "eventfd",
                                    "eventfd2",
                                    "inotify_add_watch",
                                    "inotify_init1",
                                    "inotify_rm_watch",
                                    "pidfd_open",
                                    "pipe",
                                    "pipe2",
                                    "poll",
                                    "ppoll",
                                    "pselect6",
                                    "select",
                                    "timerfd_create",
                                    "timerfd_gettime",
                                    "timerfd_settime"};

// Reads and writes; also a card's commands, which older kernels take by write(2), and libraries that are loaded late.
constexpr const char* kFiles[] = {
    "access",     "close",   "close_range", "dup",      "dup2",       "dup3",    "faccessat", "faccessat2",
    "fstat",      "fstatfs", "getcwd",      "getdents", "getdents64", "lseek",   "lstat",     "newfstatat",
    "open",       "openat",  "pread64",     "preadv",   "pwrite64",   "pwritev", "read",      "readlink",
    "readlinkat", "readv",   "stat",        "statfs",   "statx",      "write",   "writev"};

// Socket directories and sockets, memory files, and the audit log and its rotation.
constexpr const char* kChangesOfFiles[] = {"chmod",    "fchmod",    "fchmodat", "fdatasync", "flock",
                                           "fsync",    "ftruncate", "mkdir",    "mkdirat",   "rename",
                                           "renameat", "renameat2", "umask",    "unlink",    "unlinkat"};

#if RNICD_SANITIZED
// A sanitizer uses its own signal stacks. At the end LeakSanitizer stops the process from a child that shares its
// memory, and a report runs addr2line or llvm-symbolizer, under this filter, for the names of its lines.
constexpr const char* kSanitizer[] = {"arch_prctl", "clone",           "execve",      "prctl", "prlimit64",
                                      "ptrace",     "set_tid_address", "sigaltstack", "wait4"};
#else
constexpr std::array<const char*, 0> kSanitizer = {};
#endif

constexpr CallGroup kAllowed[] = {{"memory of the daemon and of its clients", kMemory},
                                  {"threads and signals of the process itself", kThreads},
                                  {"clocks", kTime},
                                  {"questions about this process and the machine", kQuestions},
                                  {"sockets", kSockets},
                                  {"waiting for something to happen", kWaiting},
                                  {"files and devices", kFiles},
                                  {"changes to files", kChangesOfFiles},
                                  {"sanitizers", kSanitizer}};

constexpr ErrnoCall kErrnoCalls[] = {
    // Its arguments are in memory, which a filter cannot read. The C library then starts threads with clone.
    {"clone3", ENOSYS},
    // The daemon accepts connections and makes none. A resolver or a logger in a library gets an error.
    {"connect", EACCES},
};

#ifdef __x86_64__
// uretprobe and uprobe: the kernel itself adds them where a process is traced with bpftrace or perf, and some kernels
// pass them through the filter.
constexpr int kAllowedNumbers[] = {335, 336};
#else
constexpr std::array<int, 0> kAllowedNumbers = {};
#endif

// Adds a rule for each value that the argument may have.
void Allow(std::vector<CallRule>& rules, const char* call, unsigned index, std::initializer_list<uint64_t> values) {
  for (const uint64_t value : values) {
    rules.push_back({call, {Is(index, value)}});
  }
}

// Memory is never writable and executable, and never becomes executable. Libraries are mapped from their files.
void AllowMappings(std::vector<CallRule>& rules) {
  constexpr unsigned kProtection = 2;
  constexpr unsigned kFlags = 3;
  rules.push_back({"mprotect", {Lacks(kProtection, PROT_EXEC)}});
  rules.push_back({"mmap", {Lacks(kProtection, PROT_EXEC)}});
  rules.push_back(
      {"mmap",
       {{.index = kProtection, .mask = PROT_EXEC | PROT_WRITE, .value = PROT_EXEC}, Lacks(kFlags, MAP_ANONYMOUS)}});
}

// Allows a thread of this process, in its namespaces, and no new process.
void AllowThreads(std::vector<CallRule>& rules) {
  constexpr uint64_t kNamespaces =
      CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
  rules.push_back({"clone", {{.index = 0, .mask = CLONE_THREAD | kNamespaces, .value = CLONE_THREAD}}});
}

bool AllowedWithAnyArguments(std::string_view call) {
  return std::any_of(std::begin(kAllowed), std::end(kAllowed), [&](const CallGroup& group) {
    return std::find(group.calls.begin(), group.calls.end(), call) != group.calls.end();
  });
}

}  // namespace

bool BuiltWithSanitizer() { return RNICD_SANITIZED != 0; }

std::span<const CallGroup> AllowedCalls() { return kAllowed; }
std::vector<CallRule> AllowedByArguments(pid_t self) {
  const auto own = static_cast<uint64_t>(self);
  std::vector<CallRule> rules;
  AllowMappings(rules);
  AllowThreads(rules);
  // For abort and raise; no signal leaves the process.
  Allow(rules, "tgkill", 0, {own});
  // Limits of this process only.
  Allow(rules, "prlimit64", 0, {0, own});
  // The names of threads, and of mappings in newer C libraries.
  Allow(rules, "prctl", 0, {PR_SET_NAME, PR_GET_NAME, PR_SET_VMA});
  // A thread's own priority, so that long work delays no short call.
  for (const char* call : {"getpriority", "setpriority"}) {
    rules.push_back({call, {Is(0, PRIO_PROCESS), Is(1, 0)}});
  }
  // A thread's own processors: ring threads stay near their clients.
  rules.push_back({"sched_setaffinity", {Is(0, 0)}});
  Allow(rules, "socket", 0, {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK});
  Allow(rules, "socketpair", 0, {AF_UNIX});
  // Without F_SETOWN and F_SETSIG, by which a descriptor sends any signal to any process of the user.
  Allow(rules, "fcntl", 1, {F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_ADD_SEALS, F_GET_SEALS});
  // A card's commands, those of the kernel's module for fast registrations, the number of a card's interface, the
  // number of readable bytes, whether a stream is a terminal; no call that injects input into a terminal.
  Allow(rules, "ioctl", 1, {RDMA_VERBS_IOCTL, SIOCGIFINDEX, FIONREAD, FIONBIO, TCGETS, TCGETS2, TIOCGWINSZ});
  Allow(
      rules, "ioctl", 1,
      {RNICD_FR_TAKE, RNICD_FR_MAP, RNICD_FR_UNMAP, RNICD_FR_CREATE_REGION, RNICD_FR_DESTROY_REGION, RNICD_FR_SUBMIT});
  // The second filter, which only adds restrictions. No listener: it could answer for the calls of other threads.
  rules.push_back({"seccomp", {Is(0, SECCOMP_SET_MODE_FILTER), Lacks(1, SECCOMP_FILTER_FLAG_NEW_LISTENER)}});
  // A call that a sanitizer needs unconditionally has no other rules.
  std::erase_if(rules, [](const CallRule& rule) { return AllowedWithAnyArguments(rule.call); });
  return rules;
}

std::span<const ErrnoCall> ErrnoCalls() { return kErrnoCalls; }
std::span<const int> AllowedNumbers() { return kAllowedNumbers; }

}  // namespace rnicd::sandbox
