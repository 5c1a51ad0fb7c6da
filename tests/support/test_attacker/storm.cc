#include "tests/support/test_attacker/storm.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <vector>

#include "base/files/unique_fd.h"
#include "tests/support/process/raw_socket.h"

namespace rnicd::test {
namespace {

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

}  // namespace rnicd::test
