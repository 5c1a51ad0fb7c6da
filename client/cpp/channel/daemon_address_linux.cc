#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <functional>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/files/paths.h"
#include "base/status.h"
#include "client/cpp/channel/daemon_address.h"
#include "client/cpp/channel/environment.h"
#include "client/cpp/channel/unix_socket_linux.h"
#include "client/cpp/client_options.h"
#include "client/cpp/transport_failure.h"

namespace rnicd::inline client {
namespace {

constexpr std::string_view kOlderPrefix = "admin-";

// The socket of an older generation.
std::string OperatorsName(uint32_t generation) {
  return std::string(kOlderPrefix) + std::to_string(generation) + ".sock";
}

std::string PathIn(const std::string& directory, const std::string& name) { return CleanPath(directory) + "/" + name; }

absl::StatusOr<std::shared_ptr<Channel>> ConnectTo(const std::string& path, std::chrono::milliseconds deadline) {
  RNICD_ASSIGN_OR_RETURN(UniqueFd connected, ConnectUnixSocket(path, SOCK_STREAM, Instant::clock::now() + deadline));
  fcntl(connected.get(), F_SETFL, fcntl(connected.get(), F_GETFL) | O_NONBLOCK);
  return std::make_shared<Channel>(
      DaemonSocket{.socket = UniqueSocket(connected.Release()), .authorization = "", .pipe = nullptr});
}

}  // namespace

std::string DefaultSocketDir() { return EnvironmentOr("RNICD_SOCKET_DIR", "/run/rnicd"); }

absl::StatusOr<std::shared_ptr<Channel>> ConnectAsWorkload(const std::string& address,
                                                           std::chrono::milliseconds deadline) {
  return ConnectTo(PathIn(address, "rpc.sock"), deadline);
}

absl::StatusOr<std::shared_ptr<Channel>> ConnectAsOperator(const std::string& address,
                                                           std::chrono::milliseconds deadline, uint32_t generation) {
  return ConnectTo(PathIn(address, generation == 0 ? "admin.sock" : OperatorsName(generation)), deadline);
}

std::vector<uint32_t> OlderGenerations(const std::string& address) {
  std::vector<uint32_t> found;
  std::error_code error;
  for (std::filesystem::directory_iterator file(address, error), end; !error && file != end; file.increment(error)) {
    const std::string name = file->path().filename();
    const std::string number = name.substr(0, name.find('.')).erase(0, kOlderPrefix.size());
    uint32_t generation = 0;
    std::from_chars(number.data(), number.data() + number.size(), generation);
    if (generation != 0 && name == OperatorsName(generation)) {
      found.push_back(generation);
    }
  }
  std::ranges::sort(found, std::greater());
  return found;
}

absl::StatusOr<std::string> DescriptorAddress(const std::string& address, const std::string& name) {
  if (name.find('/') != std::string::npos) {
    return TransportFailure(absl::StatusCode::kInternal, "the fd socket's name is a path");
  }
  return PathIn(address, name);
}

}  // namespace rnicd::inline client
