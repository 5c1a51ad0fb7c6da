#include "tests/bench/echo_server.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace rnicd::bench {
namespace {

constexpr size_t kPacketBytes = 64;

[[noreturn]] void Echo(int socket) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  char packet[kPacketBytes];
  while (recv(socket, packet, sizeof(packet), MSG_WAITALL) == static_cast<ssize_t>(sizeof(packet)) &&
         send(socket, packet, sizeof(packet), MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof(packet))) {
  }
  _exit(0);
}

}  // namespace

UniqueFd StartEchoServer() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return UniqueFd();
  }
  if (fork() == 0) {
    close(ends[0]);
    Echo(ends[1]);
  }
  close(ends[1]);
  return UniqueFd(ends[0]);
}

bool PingPong(int socket) {
  char packet[kPacketBytes] = {};
  return send(socket, packet, sizeof(packet), MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof(packet)) &&
         recv(socket, packet, sizeof(packet), MSG_WAITALL) == static_cast<ssize_t>(sizeof(packet));
}

}  // namespace rnicd::bench
