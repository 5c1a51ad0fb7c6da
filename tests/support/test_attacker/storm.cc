#include "tests/support/test_attacker/storm.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "tests/support/raw_socket.h"

namespace rnicd::test {
namespace {

// The daemon's.
constexpr int kBacklog = 4096;

sockaddr_un AddressOf(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  return address;
}

}  // namespace

void Storm(const std::string& path, int type, int held) {
  std::vector<UniqueFd> connections;
  for (int index = 0; index < held; ++index) {
    connections.push_back(ConnectUnix(path, type));
  }
  const sockaddr_un address = AddressOf(path);
  for (;;) {
    // A full queue refuses at once, instead of giving the processor to others.
    const UniqueFd connection(socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    (void)connect(connection.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  }
}

void ServeStorm(const std::string& path, int type) {
  const UniqueFd listener(socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
  const sockaddr_un address = AddressOf(path);
  if (bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      listen(listener.get(), kBacklog) != 0) {
    std::exit(1);
  }
  (void)!write(STDOUT_FILENO, "ok\n", 3);
  for (;;) {
    const UniqueFd connection(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  }
}

}  // namespace rnicd::test
