#include "tests/support/test_attacker/stuck_file_server.h"

#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "base/files/unique_fd.h"

namespace rnicd::test {
namespace {

constexpr uint64_t kFileNode = 2;
constexpr uint64_t kValidSeconds = 3600;
constexpr uint32_t kWriteMax = 4096;

UniqueFd Mount(int device, uid_t user, bool for_all_users) {
  const UniqueFd context(fsopen("fuse", FSOPEN_CLOEXEC));
  const std::string id = std::to_string(user);
  const bool configured =
      fsconfig(context.get(), FSCONFIG_SET_STRING, "fd", std::to_string(device).c_str(), 0) == 0 &&
      fsconfig(context.get(), FSCONFIG_SET_STRING, "rootmode", "40755", 0) == 0 &&
      fsconfig(context.get(), FSCONFIG_SET_STRING, "user_id", id.c_str(), 0) == 0 &&
      fsconfig(context.get(), FSCONFIG_SET_STRING, "group_id", id.c_str(), 0) == 0 &&
      (!for_all_users || fsconfig(context.get(), FSCONFIG_SET_FLAG, "allow_other", nullptr, 0) == 0) &&
      fsconfig(context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) == 0;
  return configured ? UniqueFd(fsmount(context.get(), FSMOUNT_CLOEXEC, 0)) : UniqueFd();
}

class Server {
 public:
  Server(int device, uid_t user, bool mute) : device_(device), user_(user), mute_(mute) {}

  void Stick() { stuck_ = true; }
  // False when the file system is gone.
  bool ServeOne() {
    const ssize_t size = read(device_, buffer_.data(), buffer_.size());
    if (size < static_cast<ssize_t>(sizeof(fuse_in_header))) {
      return size < 0 && (errno == EINTR || errno == ENOENT || errno == EAGAIN);
    }
    fuse_in_header request;
    std::memcpy(&request, buffer_.data(), sizeof(request));
    if (!stuck_ || !mute_) {
      Respond(request);
    }
    return true;
  }

 private:
  void Respond(const fuse_in_header& request) {
    switch (request.opcode) {
      case FUSE_INIT:
        return SendInit(request);
      case FUSE_LOOKUP:
        return SendEntry(request);
      case FUSE_GETATTR:
        return SendAttributes(request);
      case FUSE_OPEN:
        return Send(request, fuse_open_out{});
      case FUSE_FORGET:
      case FUSE_BATCH_FORGET:
      case FUSE_INTERRUPT:
        return;  // These have no response.
      case FUSE_FLUSH:
      case FUSE_RELEASE:
      case FUSE_SETATTR:
      case FUSE_WRITE:
        return stuck_ ? void() : FinishClose(request);
      default:
        return SendHeader(request, -ENOSYS);
    }
  }

  void FinishClose(const fuse_in_header& request) {
    if (request.opcode == FUSE_SETATTR) {
      return SendAttributes(request);
    }
    if (request.opcode == FUSE_WRITE) {
      fuse_write_in write;
      std::memcpy(&write, buffer_.data() + sizeof(request), sizeof(write));
      return Send(request, fuse_write_out{.size = write.size, .padding = 0});
    }
    SendHeader(request, 0);
  }

  // With the cache for writes, the last close of a file waits until what was written is with the server.
  void SendInit(const fuse_in_header& request) {
    fuse_init_in offered;
    std::memcpy(&offered, buffer_.data() + sizeof(request), sizeof(offered));
    fuse_init_out init = {};
    init.major = FUSE_KERNEL_VERSION;
    init.minor = FUSE_KERNEL_MINOR_VERSION;
    init.flags = offered.flags & (FUSE_WRITEBACK_CACHE | FUSE_BIG_WRITES);
    init.max_write = kWriteMax;
    init.time_gran = 1;
    Send(request, init);
  }

  fuse_attr Attributes(uint64_t node) const {
    fuse_attr attributes = {};
    attributes.ino = node;
    attributes.mode = node == kFileNode ? S_IFREG | 0600U : S_IFDIR | 0700U;
    attributes.nlink = 1;
    attributes.uid = user_;
    attributes.gid = user_;
    attributes.blksize = kWriteMax;
    return attributes;
  }

  // A mute server is asked again.
  uint64_t AttributesValidSeconds() const { return mute_ ? 0 : kValidSeconds; }

  void SendEntry(const fuse_in_header& request) {
    fuse_entry_out entry = {};
    entry.nodeid = kFileNode;
    entry.entry_valid = kValidSeconds;
    entry.attr_valid = AttributesValidSeconds();
    entry.attr = Attributes(kFileNode);
    Send(request, entry);
  }

  void SendAttributes(const fuse_in_header& request) {
    fuse_attr_out out = {};
    out.attr_valid = AttributesValidSeconds();
    out.attr = Attributes(request.nodeid);
    Send(request, out);
  }

  template <typename Body>
  void Send(const fuse_in_header& request, Body body) {
    SendParts(request, 0, {.iov_base = &body, .iov_len = sizeof(body)});
  }
  void SendHeader(const fuse_in_header& request, int error) const { SendParts(request, error, {}); }
  void SendParts(const fuse_in_header& request, int error, iovec body) const {
    fuse_out_header header = {
        .len = static_cast<uint32_t>(sizeof(header) + body.iov_len), .error = error, .unique = request.unique};
    const std::array<iovec, 2> parts = {iovec{.iov_base = &header, .iov_len = sizeof(header)}, body};
    (void)!writev(device_, parts.data(), body.iov_len == 0 ? 1 : 2);
  }

  const int device_;
  const uid_t user_;
  const bool mute_;
  bool stuck_ = false;
  std::array<char, 128 << 10> buffer_ = {};
};

// True if the line says so; false at the end of the input.
bool ReadStick() {
  std::array<char, 64> line;
  const ssize_t size = read(STDIN_FILENO, line.data(), line.size());
  return size > 0 && std::string(line.data(), static_cast<size_t>(size)).starts_with("stick");
}

}  // namespace

int ServeStuckFiles(uid_t user, bool mute) {
  const UniqueFd device(open("/dev/fuse", O_RDWR | O_CLOEXEC));
  const UniqueFd mount = Mount(device.get(), user, mute);
  if (!mount.valid()) {
    std::printf("error MOUNT errno=%d\n", errno);
    std::fflush(stdout);
    return 1;
  }
  std::printf("ok mount=%d\n", mount.get());
  std::fflush(stdout);
  static Server server(device.get(), user, mute);
  for (;;) {
    std::array<pollfd, 2> watched = {pollfd{.fd = device.get(), .events = POLLIN, .revents = 0},
                                     pollfd{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0}};
    poll(watched.data(), watched.size(), -1);
    if (watched[1].revents != 0) {
      if (!ReadStick()) {
        return 0;
      }
      server.Stick();
      std::printf("ok\n");
      std::fflush(stdout);
    }
    if (watched[0].revents != 0 && !server.ServeOne()) {
      return 0;
    }
  }
}

}  // namespace rnicd::test
