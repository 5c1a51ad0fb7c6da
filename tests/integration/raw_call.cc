#include "tests/integration/raw_call.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>

#include "tests/integration/http2_frames.h"
#include "tests/support/process/raw_socket.h"

namespace rnicd::test {
namespace {

constexpr size_t kFrameHead = 9;

// Removes whole frames from the front; true if one of them has bytes of a message.
bool TakeMessage(std::string& bytes) {
  while (bytes.size() >= kFrameHead) {
    const auto byte = [&](size_t at) { return static_cast<uint8_t>(bytes[at]); };
    const size_t frame = kFrameHead + (size_t{byte(0)} << 16U | size_t{byte(1)} << 8U | byte(2));
    if (bytes.size() < frame) {
      return false;
    }
    if (byte(3) == static_cast<uint8_t>(FrameType::kData)) {
      return true;
    }
    bytes.erase(0, frame);
  }
  return false;
}

}  // namespace

bool CallOnce(const std::string& socket_path, const std::string& method, std::chrono::milliseconds limit) {
  const UniqueFd connection = ConnectUnix(socket_path, SOCK_STREAM);
  return connection.valid() && CallOn(connection.get(), method, limit);
}

bool CallOn(int connection, const std::string& method, std::chrono::milliseconds limit) {
  if (!SendBytes(connection, Hello() + WholeCall(method, 1, ""))) {
    return false;
  }
  std::string unread;
  while (!TakeMessage(unread)) {
    pollfd watched = {.fd = connection, .events = POLLIN, .revents = 0};
    std::array<char, 4096> buffer;
    ssize_t size = -1;
    if (poll(&watched, 1, static_cast<int>(limit.count())) == 1) {
      size = recv(connection, buffer.data(), buffer.size(), 0);
    }
    if (size <= 0) {
      return false;
    }
    unread.append(buffer.data(), static_cast<size_t>(size));
  }
  return true;
}

}  // namespace rnicd::test
