#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "daemon/transport/identity/container.h"
#include "daemon/transport/identity/peer.h"

// Debian 12's headers are older than these.
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

namespace rnicd::transport {
namespace {

UniqueFd OpenPidfd(pid_t pid) { return UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))); }

uint64_t InodeOf(int fd) {
  struct stat file = {};
  return fstat(fd, &file) == 0 ? file.st_ino : 0;
}

// /proc/<pid>/stat from field 3 on, without the first `fields_to_skip` of these; empty when it cannot be read. The name
// in field 2 may contain spaces and brackets.
std::istringstream StatOf(pid_t pid, int fields_to_skip) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/stat"));
  std::string line;
  std::getline(file, line);
  const size_t name_end = line.rfind(')');
  std::istringstream fields(name_end == std::string::npos ? "" : line.substr(name_end + 1));
  std::string skipped;
  for (int field = 0; field < fields_to_skip; ++field) {
    fields >> skipped;
  }
  return fields;
}

// Start time of the process, field 22; 0 when it cannot be read.
uint64_t StartTimeOf(pid_t pid) {
  constexpr int kFieldsBefore = 19;
  std::istringstream fields = StatOf(pid, kFieldsBefore);
  uint64_t start_time = 0;
  fields >> start_time;
  return start_time;
}

// Whether the first thread has begun to exit: the flag PF_EXITING of include/linux/sched.h in field 9. Empty when it
// cannot be read.
std::optional<bool> IsExiting(pid_t pid) {
  constexpr uint64_t kExitingFlag = 0x4;
  constexpr int kFieldsBefore = 6;
  uint64_t flags = 0;
  return StatOf(pid, kFieldsBefore) >> flags ? std::optional((flags & kExitingFlag) != 0) : std::nullopt;
}

// The pid of the process behind a pidfd, as /proc counts pids; at most 0 when it is not visible there, or has exited.
pid_t PidBehind(int pidfd) {
  std::ifstream file(absl::StrCat("/proc/self/fdinfo/", pidfd));
  std::string name;
  pid_t pid = -1;
  while (file >> name && name != "Pid:") {
  }
  file >> pid;
  return pid;
}

// Before kernel 6.9 all pidfds share one inode, and a key made of it would make all clients equal. Since then they live
// in a filesystem of their own, whose inodes are never reused. Source: linux/magic.h.
bool PidfdsHaveTheirOwnInodes() {
  constexpr auto kPidFsMagic = 0x50494446;
  const UniqueFd self = OpenPidfd(getpid());
  struct statfs filesystem = {};
  return self.valid() && fstatfs(self.get(), &filesystem) == 0 && filesystem.f_type == kPidFsMagic;
}

UniqueFd PeerPidfd(int socket) {
  int pidfd = -1;
  socklen_t size = sizeof(pidfd);
  return getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &size) == 0 ? UniqueFd(pidfd) : UniqueFd();
}

bool KernelHasPeerPidfd() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return false;
  }
  const UniqueFd ours(ends[0]);
  const UniqueFd theirs(ends[1]);
  return PeerPidfd(ours.get()).valid();
}

// The error for errno, which the failed call set.
absl::Status IdentityError(const char* message = "the peer's process cannot be named") {
  return errno == EMFILE || errno == ENFILE ? absl::ResourceExhaustedError("no descriptor left for the peer's process")
                                            : absl::UnauthenticatedError(message);
}

// True when everything that was read through the pid belongs to this process. A pid is not reused while its process
// exists, so the pidfd is checked last.
bool IsStillAlive(const PidfdHandle& process, pid_t pid) {
  errno = 0;
  return PidBehind(process.pidfd()) == pid && IsExiting(pid) == std::optional(false) && !process.HasExited({});
}

// The whole file, or as much as proves it to be too long for ParseCgroups.
absl::StatusOr<std::string> ReadCgroups(const std::string& proc_folder, const std::string& process) {
  const UniqueFd file(open(absl::StrCat(proc_folder, "/", process, "/cgroup").c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  std::array<char, 4096> piece;
  ssize_t count = file.valid() ? 1 : -1;
  while (count > 0 && text.size() <= kMaxCgroupsBytes) {
    count = read(file.get(), piece.data(), piece.size());
    text.append(piece.data(), count > 0 ? static_cast<size_t>(count) : 0);
  }
  if (count < 0) {
    return IdentityError("the peer's control groups cannot be read");
  }
  return text;
}

struct NamedProcess {
  ucred credentials = {};
  UniqueFd pidfd;
  core::ProcessKey key;

  // Pid 0 is a process of a namespace that is not visible here: its pid does not identify it.
  bool is_visible() const { return credentials.pid > 0; }
};

absl::StatusOr<NamedProcess> NameProcess(int socket, IdentityRung rung) {
  NamedProcess process;
  socklen_t size = sizeof(process.credentials);
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &process.credentials, &size) != 0) {
    return IdentityError();
  }
  errno = 0;
  const pid_t pid = process.credentials.pid;
  process.pidfd = rung == IdentityRung::kPeerPidfd ? PeerPidfd(socket)
                  : process.is_visible()           ? OpenPidfd(pid)
                                                   : UniqueFd();
  if (!process.pidfd.valid()) {
    return IdentityError();
  }
  if (rung == IdentityRung::kPeerPidfd) {
    process.key.low = InodeOf(process.pidfd.get());
  } else {
    process.key = {.high = StartTimeOf(pid), .low = static_cast<uint64_t>(pid)};
    if (process.key.high == 0) {
      return IdentityError();
    }
  }
  return process;
}

}  // namespace

const char* IdentityRungName(IdentityRung rung) {
  return rung == IdentityRung::kPeerPidfd ? "peer_pidfd" : "pidfd_open";
}

absl::StatusOr<IdentityRung> ProbeIdentityRung() {
  if (!OpenPidfd(getpid()).valid()) {
    return absl::UnimplementedError(absl::StrCat("pidfd_open: ", strerror(errno)));
  }
  return KernelHasPeerPidfd() && PidfdsHaveTheirOwnInodes() ? IdentityRung::kPeerPidfd : IdentityRung::kPidfdOpen;
}

// A process that is exiting counts: on a slow machine much time passes between the close of its sockets and its own
// end.
bool PidfdHandle::HasExited(std::chrono::milliseconds wait) const {
  pollfd exit = {.fd = pidfd_.get(), .events = POLLIN, .revents = 0};
  if (poll(&exit, 1, static_cast<int>(wait.count())) == 1) {
    return true;
  }
  const pid_t pid = PidBehind(pidfd_.get());
  return pid > 0 && IsExiting(pid).value_or(false);
}

absl::StatusOr<core::Container> ReadContainer(const std::string& proc_folder, pid_t pid) {
  RNICD_ASSIGN_OR_RETURN(const std::string theirs, ReadCgroups(proc_folder, std::to_string(pid)));
  RNICD_ASSIGN_OR_RETURN(const std::string ours, ReadCgroups(proc_folder, "self"));
  absl::StatusOr<core::Container> container = ParseCgroups(theirs, ours);
  if (!container.ok()) {
    return absl::UnauthenticatedError(container.status().message());
  }
  return container;
}

absl::StatusOr<core::ProcessKey> IdentifyProcess(int socket, IdentityRung rung) {
  RNICD_ASSIGN_OR_RETURN(const NamedProcess process, NameProcess(socket, rung));
  return process.key;
}

absl::StatusOr<Peer> IdentifyPeer(int socket, IdentityRung rung, core::Role role, const std::string& proc_folder) {
  RNICD_ASSIGN_OR_RETURN(NamedProcess process, NameProcess(socket, rung));
  const ucred& credentials = process.credentials;
  core::Container container;
  if (process.is_visible()) {
    RNICD_ASSIGN_OR_RETURN(container, ReadContainer(proc_folder, credentials.pid));
  }
  Peer peer;
  peer.process = std::make_shared<PidfdHandle>(std::move(process.pidfd));
  if (process.is_visible() ? !IsStillAlive(*peer.process, credentials.pid) : peer.process->HasExited({})) {
    return IdentityError();
  }
  peer.caller = core::Caller{.process = process.key,
                             .pid = credentials.pid,
                             .uid = credentials.uid,
                             .gid = credentials.gid,
                             .role = role,
                             .container = std::move(container),
                             .handle = peer.process};
  return peer;
}

}  // namespace rnicd::transport
