#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>

#include "base/clock.h"
#include "base/status.h"
#include "client/ctl/trials/peer_link_linux.h"

namespace rnicd::ctl {
namespace {

using std::chrono::milliseconds;

constexpr int kSocketFlags = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
// Between two attempts to reach a peer that does not listen yet.
constexpr milliseconds kPause{200};
// After it an address that does not respond is looked up again: the peer may have another by then.
constexpr milliseconds kAttempt{5'000};

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

absl::Status SystemFailure(const std::string& what, const char* reason) {
  return absl::UnavailableError(what + ": " + reason);
}

absl::StatusOr<Addresses> Resolve(const HostPort& where, int flags) {
  const addrinfo hints = {.ai_flags = flags | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
  addrinfo* found = nullptr;
  const int error = getaddrinfo(where.host.c_str(), std::to_string(where.port).c_str(), &hints, &found);
  if (error != 0) {
    return SystemFailure(FormatHostPort(where), gai_strerror(error));
  }
  return Addresses(found, freeaddrinfo);
}

// False on timeout.
bool WaitUntilReady(int socket, int16_t events, Instant deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - Instant::clock::now());
    pollfd waiting{.fd = socket, .events = events, .revents = 0};
    if (poll(&waiting, 1, static_cast<int>(std::max(left, milliseconds(0)).count())) > 0) {
      return true;
    }
    if (Instant::clock::now() >= deadline) {
      return false;
    }
  }
}

// 0, or an errno.
int ConnectOnce(const UniqueSocket& socket, const addrinfo& address, Instant deadline) {
  if (connect(socket.get(), address.ai_addr, address.ai_addrlen) == 0) {
    return 0;
  }
  if (errno != EINPROGRESS) {
    return errno;
  }
  if (!WaitUntilReady(socket.get(), POLLOUT, deadline)) {
    return ETIMEDOUT;
  }
  int error = 0;
  socklen_t size = sizeof(error);
  getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

absl::StatusOr<UniqueSocket> TryToConnect(const HostPort& peer, Instant deadline) {
  RNICD_ASSIGN_OR_RETURN(const Addresses addresses, Resolve(peer, 0));
  int error = 0;
  for (const addrinfo* address = addresses.get(); address != nullptr; address = address->ai_next) {
    UniqueSocket socket(::socket(address->ai_family, kSocketFlags, 0));
    error =
        socket.valid() ? ConnectOnce(socket, *address, std::min(deadline, Instant::clock::now() + kAttempt)) : errno;
    if (error == 0) {
      return socket;
    }
  }
  return SystemFailure(FormatHostPort(peer), std::strerror(error));
}

uint16_t PortOf(const UniqueSocket& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size);
  // In the same place of the addresses of both families.
  return ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

// Worth another attempt of the same call.
bool IsTransient(int error) { return error == EAGAIN || error == EINTR || error == ECONNABORTED; }

}  // namespace

absl::StatusOr<PeerLink> PeerLink::Connect(const HostPort& peer, milliseconds wait) {
  const Instant deadline = Instant::clock::now() + wait;
  for (;;) {
    absl::StatusOr<UniqueSocket> socket = TryToConnect(peer, deadline);
    if (socket.ok()) {
      return PeerLink(*std::move(socket), wait);
    }
    if (Instant::clock::now() + kPause >= deadline) {
      return absl::DeadlineExceededError("no peer was found within " +
                                         FormatMilliseconds(static_cast<uint64_t>(wait.count())) + "; " +
                                         std::string(socket.status().message()));
    }
    std::this_thread::sleep_for(kPause);
  }
}

absl::Status PeerLink::Send(std::string_view line) {
  const Instant deadline = Instant::clock::now() + wait_;
  while (!line.empty()) {
    const ssize_t sent = send(socket_.get(), line.data(), line.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      line.remove_prefix(static_cast<size_t>(sent));
    } else if (!IsTransient(errno)) {
      return absl::UnavailableError("the peer hung up");
    } else if (!WaitUntilReady(socket_.get(), POLLOUT, deadline)) {
      return absl::DeadlineExceededError("the peer takes no bytes");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> PeerLink::Receive(std::string_view what) {
  const Instant deadline = Instant::clock::now() + wait_;
  for (;;) {
    if (const size_t end = received_.find('\n'); end != std::string::npos) {
      std::string line = received_.substr(0, end);
      received_.erase(0, end + 1);
      return line;
    }
    if (received_.size() >= kPeerLineMax) {
      return absl::InvalidArgumentError("the peer sent a line of more than " + std::to_string(kPeerLineMax) +
                                        " bytes instead of " + std::string(what));
    }
    if (!WaitUntilReady(socket_.get(), POLLIN, deadline)) {
      return absl::DeadlineExceededError("the peer did not send " + std::string(what) + " within " +
                                         FormatMilliseconds(static_cast<uint64_t>(wait_.count())));
    }
    std::array<char, kPeerLineMax> bytes;
    const ssize_t count = recv(socket_.get(), bytes.data(), bytes.size() - received_.size(), 0);
    if (count > 0) {
      received_.append(bytes.data(), static_cast<size_t>(count));
    } else if (count == 0 || !IsTransient(errno)) {
      return absl::UnavailableError("the peer hung up instead of sending " + std::string(what));
    }
  }
}

absl::StatusOr<PeerListener> PeerListener::Open(const HostPort& at) {
  RNICD_ASSIGN_OR_RETURN(const Addresses addresses, Resolve(at, AI_PASSIVE));
  UniqueSocket socket(::socket(addresses->ai_family, kSocketFlags, 0));
  // A listener that is started again finds its port in the state TIME_WAIT.
  const int reuse = 1;
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof(reuse));
  if (bind(socket.get(), addresses->ai_addr, addresses->ai_addrlen) != 0 || listen(socket.get(), 1) != 0) {
    return SystemFailure("cannot listen on " + FormatHostPort(at), std::strerror(errno));
  }
  const uint16_t port = PortOf(socket);
  return PeerListener(std::move(socket), {.host = at.host, .port = port});
}

absl::StatusOr<PeerLink> PeerListener::Accept(milliseconds wait) const {
  const Instant deadline = Instant::clock::now() + wait;
  while (WaitUntilReady(socket_.get(), POLLIN, deadline)) {
    UniqueSocket peer(accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (peer.valid()) {
      return PeerLink(std::move(peer), wait);
    }
    if (!IsTransient(errno)) {
      return SystemFailure("accept", std::strerror(errno));
    }
  }
  return absl::DeadlineExceededError("no peer connected within " +
                                     FormatMilliseconds(static_cast<uint64_t>(wait.count())));
}

}  // namespace rnicd::ctl
