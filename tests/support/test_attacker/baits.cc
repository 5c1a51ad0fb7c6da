#include "tests/support/test_attacker/baits.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "tests/support/test_attacker/stuck_file_server.h"

namespace rnicd::test {
namespace {

constexpr int kLingerSeconds = 60;
constexpr size_t kPageBytes = 4096;

// The smallest buffers that the kernel allows, so that few bytes fill them.
void ShrinkBuffers(int socket) {
  const int size = 1;
  setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
  setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
}

// A listener of loopback whose connections have small buffers, and its address.
UniqueFd ListenOnLoopback(sockaddr_in& address) {
  UniqueFd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ShrinkBuffers(listener.get());
  address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  (void)bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), size);
  (void)listen(listener.get(), 1);
  (void)getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size);
  return listener;
}

// Writes until neither end takes any more, then lets close() wait for the rest.
void FillAndLinger(int socket) {
  const std::array<char, 4096> bytes = {};
  while (send(socket, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
  }
  const linger patience = {.l_onoff = 1, .l_linger = kLingerSeconds};
  setsockopt(socket, SOL_SOCKET, SO_LINGER, &patience, sizeof(patience));
}

UniqueFd OpenStuckFile(int mount) { return UniqueFd(openat(mount, kStuckFileName, O_RDWR | O_CLOEXEC)); }

// A file is stuck while it has bytes that the server must accept.
void MakeDirty(int file) { (void)!pwrite(file, "x", 1, 0); }

}  // namespace

Baits LingeringSockets(int count) {
  Baits baits;
  sockaddr_in address = {};
  const UniqueFd listener = ListenOnLoopback(address);
  for (int index = 0; index < count; ++index) {
    UniqueFd bait(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ShrinkBuffers(bait.get());
    (void)connect(bait.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address));
    UniqueFd peer(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!peer.valid()) {
      break;
    }
    FillAndLinger(bait.get());
    baits.descriptors.push_back(std::move(bait));
    baits.peers.push_back(std::move(peer));
  }
  return baits;
}

Baits StuckFiles(int mount, int count) {
  Baits baits{.closable = false, .descriptors = {}, .peers = {}};
  for (int index = 0; index < count; ++index) {
    UniqueFd file = OpenStuckFile(mount);
    if (!file.valid()) {
      break;
    }
    MakeDirty(file.get());
    baits.descriptors.push_back(std::move(file));
  }
  return baits;
}

Baits SocketsWithStuckFiles(int mount, int count) {
  Baits baits;
  for (int index = 0; index < count; ++index) {
    std::array<int, 2> ends = {-1, -1};
    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data());
    const UniqueFd from(ends[0]);
    UniqueFd to(ends[1]);
    const UniqueFd file = OpenStuckFile(mount);
    if (!file.valid() || SendWithDescriptors(from.get(), "x", {file.get()}) != 0) {
      break;
    }
    baits.descriptors.push_back(std::move(to));
  }
  // All are openings of one file, which gets stuck only now: closing them above had to succeed.
  baits.peers.push_back(OpenStuckFile(mount));
  MakeDirty(baits.peers.back().get());
  return baits;
}

WithheldPage::WithheldPage() : faults_(static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC))) {
  uffdio_api api = {.api = UFFD_API, .features = 0, .ioctls = 0};
  if (!faults_.valid() || ioctl(faults_.get(), UFFDIO_API, &api) != 0) {
    return;
  }
  void* const page = mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  uffdio_register withheld = {.range = {.start = reinterpret_cast<uintptr_t>(page), .len = kPageBytes},
                              .mode = UFFDIO_REGISTER_MODE_MISSING,
                              .ioctls = 0};
  if (page != MAP_FAILED && ioctl(faults_.get(), UFFDIO_REGISTER, &withheld) == 0) {
    page_ = page;
  }
}

bool WithheldPage::BeginWrite(int file) {
  std::thread([this, file] { (void)!pwrite(file, page_, kPageBytes, 0); }).detach();
  uffd_msg fault;
  return read(faults_.get(), &fault, sizeof(fault)) == static_cast<ssize_t>(sizeof(fault));
}

int SendWithDescriptors(int socket, const std::string& bytes, const std::vector<int>& descriptors) {
  iovec piece = {.iov_base = const_cast<char*>(bytes.data()), .iov_len = bytes.size()};
  std::vector<char> control(CMSG_SPACE(descriptors.size() * sizeof(int)));
  msghdr message = {};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
  std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size() * sizeof(int));
  return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? errno : 0;
}

}  // namespace rnicd::test
