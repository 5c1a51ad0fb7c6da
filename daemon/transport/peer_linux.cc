#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "daemon/transport/peer.h"

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

// /proc/<pid>/stat from field 3 on, with so many fields taken off; empty when it cannot be read. The name in field 2
// may hold spaces and brackets.
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

// Field 22; 0 when it cannot be read.
uint64_t StartTimeOf(pid_t pid) {
  constexpr int kFieldsBefore = 19;
  std::istringstream fields = StatOf(pid, kFieldsBefore);
  uint64_t start_time = 0;
  fields >> start_time;
  return start_time;
}

// Before kernel 6.9 all pidfds share one inode, and a key made of it would make all clients equal. Since then they live
// in a filesystem of their own, whose inodes are never used again. Source: linux/magic.h.
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

// Judges errno, which the failed call set.
absl::Status Gone() {
  return errno == EMFILE || errno == ENFILE ? absl::ResourceExhaustedError("no descriptor left for the peer's process")
                                            : absl::UnauthenticatedError("the peer's process cannot be named");
}

// The process behind a pidfd has begun to exit: field 9, the flag PF_EXITING of include/linux/sched.h.
bool IsExiting(int pidfd) {
  constexpr uint64_t kExitingFlag = 0x4;
  constexpr int kFieldsBefore = 6;
  std::ifstream file(absl::StrCat("/proc/self/fdinfo/", pidfd));
  std::string name;
  pid_t pid = -1;
  while (file >> name && name != "Pid:") {
  }
  file >> pid;
  uint64_t flags = 0;
  return pid > 0 && StatOf(pid, kFieldsBefore) >> flags && (flags & kExitingFlag) != 0;
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

// A process that is on its way out counts: on a slow machine much time passes between the end of its sockets and its
// own.
bool PidfdHandle::HasExited(std::chrono::milliseconds wait) const {
  pollfd exit = {.fd = pidfd_.get(), .events = POLLIN, .revents = 0};
  return poll(&exit, 1, static_cast<int>(wait.count())) == 1 || IsExiting(pidfd_.get());
}

absl::StatusOr<Peer> IdentifyPeer(int socket, IdentityRung rung, core::Role role) {
  ucred credentials = {};
  socklen_t size = sizeof(credentials);
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    return Gone();
  }
  core::ProcessKey key;
  UniqueFd pidfd;
  if (rung == IdentityRung::kPeerPidfd) {
    pidfd = PeerPidfd(socket);
    if (!pidfd.valid()) {
      return Gone();
    }
    key.low = InodeOf(pidfd.get());
  } else {
    // Pid 0 is a process of a namespace we cannot see: all such would look the same.
    pidfd = credentials.pid > 0 ? OpenPidfd(credentials.pid) : UniqueFd();
    key.high = StartTimeOf(credentials.pid);
    key.low = static_cast<uint64_t>(credentials.pid);
    // The start time was this process's only if it is still alive now.
    if (!pidfd.valid() || key.high == 0 || PidfdHandle(UniqueFd(dup(pidfd.get()))).HasExited({})) {
      return Gone();
    }
  }
  Peer peer;
  peer.process = std::make_shared<PidfdHandle>(std::move(pidfd));
  peer.caller = core::Caller{.process = key,
                             .pid = credentials.pid,
                             .uid = credentials.uid,
                             .gid = credentials.gid,
                             .role = role,
                             .handle = peer.process};
  return peer;
}

}  // namespace rnicd::transport
