#include <winsock2.h>
// Behind winsock2.h, whose types they use.
#include <iphlpapi.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/system/winsock.h"
#include "daemon/pipes/tcp_door.h"

namespace rnicd::pipes {
namespace {

constexpr int kBacklog = 256;
// Connections accepted at one door before the other has its turn.
constexpr int kAcceptsAtOnce = 16;
// Connections that have sent nothing: at most so many, for at most so long. A client of gRPC sends its preface at once.
constexpr size_t kSilentMax = 256;
constexpr std::chrono::seconds kSilentTime{10};
// How soon the thread notices that it is to stop.
constexpr int kPollMs = 100;
// The table may grow between the call that says its size and the next.
constexpr int kTries = 8;

absl::Status SocketError(const char* call) {
  return absl::UnavailableError(absl::StrCat(call, ": error ", WSAGetLastError()));
}

SOCKET SocketOf(const UniqueSocket& socket) { return static_cast<SOCKET>(socket.get()); }

// As rpc needs it: no call on it blocks, and small frames leave at once. No child inherits it.
void Prepare(SOCKET socket) {
  u_long non_blocking = 1;
  ioctlsocket(socket, static_cast<long>(FIONBIO), &non_blocking);
  const BOOL no_delay = TRUE;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, reinterpret_cast<const char*>(&no_delay), sizeof(no_delay));
  SetHandleInformation(reinterpret_cast<HANDLE>(socket), HANDLE_FLAG_INHERIT, 0);
}

// The lower half of a port's member has it in the order of the network.
uint16_t PortFrom(DWORD member) { return ntohs(static_cast<u_short>(member)); }

// ::ffff:a.b.c.d, the address of IPv4 as one of IPv6.
bool IsMapped(std::span<const UCHAR, 16> address, uint32_t ipv4) {
  constexpr std::array<UCHAR, 12> kPrefix = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::ranges::equal(address.first<12>(), kPrefix) && std::memcmp(&address[12], &ipv4, sizeof(ipv4)) == 0;
}

}  // namespace

bool ConnectionTable::Read(uint32_t family) {
  DWORD error = ERROR_INSUFFICIENT_BUFFER;
  for (int tries = 0; tries < kTries && error == ERROR_INSUFFICIENT_BUFFER; ++tries) {
    auto bytes = static_cast<DWORD>(buffer_.size());
    error = GetExtendedTcpTable(buffer_.empty() ? nullptr : buffer_.data(), &bytes, FALSE, family,
                                TCP_TABLE_OWNER_PID_CONNECTIONS, 0);
    if (error == ERROR_INSUFFICIENT_BUFFER) {
      buffer_.resize(bytes + bytes / 4);
    }
  }
  return error == NO_ERROR && !buffer_.empty();
}

uint32_t ConnectionTable::PidOf(const Ends& ends) {
  const auto has_ports = [&ends](DWORD local, DWORD remote) {
    return PortFrom(local) == ends.client_port && PortFrom(remote) == ends.daemon_port;
  };
  if (Read(AF_INET)) {
    const auto& table = *reinterpret_cast<const MIB_TCPTABLE_OWNER_PID*>(buffer_.data());
    for (const MIB_TCPROW_OWNER_PID& row : std::span(table.table, table.dwNumEntries)) {
      if (has_ports(row.dwLocalPort, row.dwRemotePort) && row.dwLocalAddr == ends.address &&
          row.dwRemoteAddr == htonl(INADDR_LOOPBACK)) {
        return row.dwOwningPid;
      }
    }
  }
  // A client with a socket for both families, as gRPC has, may stand there instead.
  if (Read(AF_INET6)) {
    const auto& table = *reinterpret_cast<const MIB_TCP6TABLE_OWNER_PID*>(buffer_.data());
    for (const MIB_TCP6ROW_OWNER_PID& row : std::span(table.table, table.dwNumEntries)) {
      if (has_ports(row.dwLocalPort, row.dwRemotePort) && IsMapped(row.ucLocalAddr, ends.address) &&
          IsMapped(row.ucRemoteAddr, htonl(INADDR_LOOPBACK))) {
        return row.dwOwningPid;
      }
    }
  }
  return 0;
}

absl::StatusOr<TcpDoor::Listener> TcpDoor::Listen() {
  const SOCKET raw = WSASocketW(AF_INET, SOCK_STREAM, IPPROTO_TCP, nullptr, 0, WSA_FLAG_NO_HANDLE_INHERIT);
  if (raw == INVALID_SOCKET) {
    return SocketError("WSASocket");
  }
  Listener listener;
  listener.socket = UniqueSocket(static_cast<int>(raw));
  // Without it another process could bind the same port and receive connections meant for the daemon.
  const BOOL exclusive = TRUE;
  u_long non_blocking = 1;
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int bytes = sizeof(address);
  if (setsockopt(raw, SOL_SOCKET, SO_EXCLUSIVEADDRUSE, reinterpret_cast<const char*>(&exclusive), sizeof(exclusive)) !=
          0 ||
      ioctlsocket(raw, static_cast<long>(FIONBIO), &non_blocking) != 0 ||
      bind(raw, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 || listen(raw, kBacklog) != 0 ||
      getsockname(raw, reinterpret_cast<sockaddr*>(&address), &bytes) != 0) {
    return SocketError("bind, listen");
  }
  listener.port = ntohs(address.sin_port);
  return listener;
}

absl::StatusOr<std::unique_ptr<TcpDoor>> TcpDoor::Open() {
  if (!StartWinsock()) {
    return absl::UnavailableError("WSAStartup");
  }
  std::unique_ptr<TcpDoor> door(new TcpDoor());
  for (Listener& listener : door->listeners_) {
    RNICD_ASSIGN_OR_RETURN(listener, Listen());
  }
  return door;
}

TcpDoor::~TcpDoor() { Stop(); }

void TcpDoor::Start(OnConnection on_connection) {
  on_connection_ = std::move(on_connection);
  thread_ = std::thread([this] { Run(); });
}

void TcpDoor::Stop() {
  stopping_.store(true);
  if (thread_.joinable()) {
    thread_.join();
  }
  for (Listener& listener : listeners_) {
    listener.socket.Reset(-1);
  }
}

void TcpDoor::Run() {
  while (!stopping_.load()) {
    std::vector<WSAPOLLFD> watched;
    for (const Listener& listener : listeners_) {
      watched.push_back({.fd = SocketOf(listener.socket), .events = POLLRDNORM, .revents = 0});
    }
    for (const Silent& connection : silent_) {
      watched.push_back({.fd = SocketOf(connection.socket), .events = POLLRDNORM, .revents = 0});
    }
    if (WSAPoll(watched.data(), static_cast<ULONG>(watched.size()), kPollMs) > 0) {
      std::vector<Silent> still;
      for (size_t index = 0; index < silent_.size(); ++index) {
        if (watched[listeners_.size() + index].revents != 0) {
          Introduce(std::move(silent_[index]));
        } else {
          still.push_back(std::move(silent_[index]));
        }
      }
      silent_ = std::move(still);
      for (const Door door : kDoors) {
        for (int accepted = 0; accepted < kAcceptsAtOnce && AcceptOne(door); ++accepted) {
        }
      }
    }
    DropSilent();
    RunTasks();
  }
  silent_.clear();
}

void TcpDoor::Post(std::function<void()> task) {
  MutexLock lock(mutex_);
  tasks_.push_back(std::move(task));
}

void TcpDoor::RunTasks() {
  std::vector<std::function<void()>> tasks;
  {
    MutexLock lock(mutex_);
    tasks.swap(tasks_);
  }
  for (const std::function<void()>& task : tasks) {
    task();
  }
}

bool TcpDoor::AcceptOne(Door door) {
  const Listener& listener = listeners_[static_cast<size_t>(door)];
  sockaddr_in peer = {};
  int bytes = sizeof(peer);
  const SOCKET raw = accept(SocketOf(listener.socket), reinterpret_cast<sockaddr*>(&peer), &bytes);
  if (raw == INVALID_SOCKET) {
    return false;
  }
  UniqueSocket socket(static_cast<int>(raw));
  Prepare(raw);
  silent_.push_back(
      {.door = door,
       .socket = std::move(socket),
       .ends = {.address = peer.sin_addr.s_addr, .client_port = ntohs(peer.sin_port), .daemon_port = listener.port},
       .since = std::chrono::steady_clock::now()});
  return true;
}

void TcpDoor::Introduce(Silent connection) {
  const uint32_t pid = table_.PidOf(connection.ends);
  on_connection_(connection.door, pid, std::move(connection.socket));
}

void TcpDoor::DropSilent() {
  const Instant limit = std::chrono::steady_clock::now() - kSilentTime;
  const auto kept = std::find_if(silent_.begin(), silent_.end(),
                                 [limit](const Silent& connection) { return connection.since >= limit; });
  const auto surplus = static_cast<std::ptrdiff_t>(silent_.size() - std::min(silent_.size(), kSilentMax));
  silent_.erase(silent_.begin(), std::max(kept, silent_.begin() + surplus));
}

}  // namespace rnicd::pipes
