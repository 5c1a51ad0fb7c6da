#include "client/cpp/channel/unix_socket_linux.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "client/cpp/transport_failure.h"

namespace rnicd::inline client {

absl::Status CheckUnixAddress(const std::string& path) {
  constexpr size_t kBytesMax = sizeof(sockaddr_un::sun_path) - 1;
  if (!path.empty() && path.size() <= kBytesMax) {
    return absl::OkStatus();
  }
  return MakeErrorWithDetail(
      {.reason = ErrorReason::FIELD_OUT_OF_RANGE, .field = "socket_dir"},
      absl::StrCat("the path of a Unix socket has at most ", kBytesMax, " bytes, not ", path.size(), ": ", path));
}

void SetTimeouts(int socket_fd, Instant deadline) {
  // A timeout of zero would mean to wait forever.
  const auto left = std::max(std::chrono::duration_cast<std::chrono::microseconds>(deadline - Instant::clock::now()),
                             std::chrono::microseconds(1));
  const timeval timeout = {.tv_sec = left.count() / 1'000'000, .tv_usec = left.count() % 1'000'000};
  setsockopt(socket_fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
  setsockopt(socket_fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
}

absl::StatusOr<UniqueFd> ConnectUnixSocket(const std::string& path, int type, Instant deadline) {
  RNICD_RETURN_IF_ERROR(CheckUnixAddress(path));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  UniqueFd socket_fd(socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
  const auto connect_once = [&] {
    return connect(socket_fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  };
  if (!socket_fd.valid() || Uninterrupted(socket_fd.get(), deadline, connect_once) != 0) {
    const int error_number = errno;
    return TransportFailure(
        error_number == EAGAIN ? absl::StatusCode::kDeadlineExceeded : absl::StatusCode::kUnavailable,
        error_number == EAGAIN ? path + " has a full queue of connections" : path + ": " + std::strerror(error_number));
  }
  return socket_fd;
}

}  // namespace rnicd::inline client
