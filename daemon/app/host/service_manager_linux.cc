#include "daemon/app/host/service_manager_linux.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "absl/strings/numbers.h"
#include "base/system/this_process.h"

namespace rnicd::app {
namespace {

std::string EnvironmentValue(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

// Without a manager that can be reached, an invalid descriptor: the daemon then serves all the same.
UniqueFd ConnectTo(const std::string& name) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (name.empty() || (name[0] != '/' && name[0] != '@') || name.size() >= sizeof(address.sun_path)) {
    return UniqueFd();
  }
  std::copy(name.begin(), name.end(), address.sun_path);
  if (name[0] == '@') {
    address.sun_path[0] = '\0';
  }
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), length) == 0 ? std::move(socket)
                                                                                         : UniqueFd();
}

}  // namespace

ServiceManager::Options ServiceManager::FromEnvironment() {
  uint64_t microseconds = 0;
  const std::string pid = EnvironmentValue("WATCHDOG_PID");
  const bool is_watched = absl::SimpleAtoi(EnvironmentValue("WATCHDOG_USEC"), &microseconds) &&
                          microseconds <= static_cast<uint64_t>(std::chrono::microseconds::max().count()) &&
                          (pid.empty() || pid == std::to_string(ProcessId()));
  return {.socket = EnvironmentValue("NOTIFY_SOCKET"),
          .alive_every = std::chrono::microseconds(is_watched ? microseconds / 2 : 0)};
}

ServiceManager::ServiceManager(const Options& options)
    : alive_every_(options.alive_every), socket_(ConnectTo(options.socket)) {}

void ServiceManager::Reloads(Instant now) {
  const auto time = std::chrono::duration_cast<std::chrono::microseconds>(now.time_since_epoch()).count();
  SendState("RELOADING=1\nMONOTONIC_USEC=" + std::to_string(time), "reads the policy");
}

void ServiceManager::SetStatus(std::string_view status) { Send("STATUS=" + std::string(status) + "\n"); }

void ServiceManager::SendState(std::string_view state, std::string_view status) {
  std::string message = std::string(state) + "\nSTATUS=" + std::string(status) + "\n";
  MutexLock lock(mutex_);
  unsent_.clear();
  if (!Send(message)) {
    unsent_ = std::move(message);
  }
}

void ServiceManager::StaysAlive(Instant now) {
  MutexLock lock(mutex_);
  if (!unsent_.empty() && Send(unsent_)) {
    unsent_.clear();
  }
  if (alive_every_.count() != 0 && now - last_alive_ >= alive_every_ && Send("WATCHDOG=1\n")) {
    last_alive_ = now;
  }
}

bool ServiceManager::Send(std::string_view message) const {
  return !socket_.valid() || send(socket_.get(), message.data(), message.size(), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0 ||
         (errno != EAGAIN && errno != EINTR);
}

}  // namespace rnicd::app
