#include "daemon/transport/connection_watcher.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/errno_status.h"
#include "base/status.h"
#include "daemon/core/session/session_registry.h"
#include "daemon/core/tenant/observation.h"
#include "daemon/door/refusal.h"
#include "daemon/transport/fd_service.h"

namespace rnicd::transport {
namespace {

// Period of the search for idle connections, expired grants and removed sockets.
constexpr int kTickMs = 200;
constexpr int kEventsAtOnce = 64;
constexpr uint64_t kWatchBits = 2;
constexpr uint64_t kWatchMask = (1U << kWatchBits) - 1;

uint64_t Pack(uint64_t key, uint8_t watch) { return key << kWatchBits | watch; }

}  // namespace

ConnectionWatcher::ConnectionWatcher(const door::Services& services, std::chrono::milliseconds silent_timeout,
                                     Inbox::Task tick)
    : services_(services),
      silent_timeout_(silent_timeout),
      tick_(std::move(tick)),
      handover_(services.node, services.bulkhead),
      epoll_(epoll_create1(EPOLL_CLOEXEC)) {}

absl::Status ConnectionWatcher::Start() {
  if (!epoll_.valid() || !inbox_->valid()) {
    return absl::UnavailableError(ErrnoDetail("epoll_create1, eventfd", errno));
  }
  RNICD_RETURN_IF_ERROR(Add(inbox_->fd(), EPOLLIN, Watch::kWakeUp, 0));
  thread_ = std::thread([this] { Run(); });
  return absl::OkStatus();
}

void ConnectionWatcher::Stop() {
  stopping_.store(true);
  inbox_->WakeUp();
  thread_.join();
}

absl::Status ConnectionWatcher::Add(int fd, uint32_t events, Watch watch, uint64_t key) {
  epoll_event event = {};
  event.events = events;
  event.data.u64 = Pack(key, static_cast<uint8_t>(watch));
  return epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0
             ? absl::OkStatus()
             : absl::UnavailableError(ErrnoDetail("epoll_ctl", errno));
}

void ConnectionWatcher::Run() {
  std::array<epoll_event, kEventsAtOnce> events;
  while (!stopping_.load()) {
    const int count = epoll_wait(epoll_.get(), events.data(), kEventsAtOnce, kTickMs);
    for (const epoll_event& event : std::span(events.data(), static_cast<size_t>(std::max(count, 0)))) {
      Handle(event.data.u64);
    }
    Tick();
  }
  CloseWhere([](const AdmittedConnection&) { return true; });
}

void ConnectionWatcher::Handle(uint64_t data) {
  const uint64_t key = data >> kWatchBits;
  switch (static_cast<Watch>(data & kWatchMask)) {
    case Watch::kWakeUp:
      inbox_->Run();
      break;
    case Watch::kProcess:
      HandleExit(key);
      break;
    case Watch::kSocket:
      HandleSocket(key);
      break;
  }
}

void ConnectionWatcher::HandleExit(uint64_t key) {
  std::optional<Connection> connection = Forget(key);
  if (connection.has_value()) {
    // A child that still has the socket open does not keep its parent's objects alive.
    services_.registry.EndAllOf(connection->admitted.peer.caller.process, core::EndCause::kProcessExited);
    Close(std::move(connection));
  }
}

void ConnectionWatcher::HandleSocket(uint64_t key) {
  std::optional<Connection> connection = Forget(key);
  if (connection.has_value() && connection->admitted.door() == Door::kFd) {
    ServeFdPacket(handover_, connection->admitted);
  } else {
    Close(std::move(connection));
  }
}

// At most once per period, however many events arrive.
void ConnectionWatcher::Tick() {
  const Instant now = services_.node.clock.Now();
  if (now < next_tick_) {
    return;
  }
  next_tick_ = now + std::chrono::milliseconds(kTickMs);
  CloseSilent();
  services_.registry.EndExpired();
  tick_();
}

// --- connections ---

void ConnectionWatcher::Serve(AdmittedConnection admitted) {
  std::unique_ptr<door::ServedConnection> served;
  if (admitted.door() != Door::kFd) {
    served = services_.server.Serve({.socket = ClientSocket::DescriptorOf(admitted.socket),
                                     .caller = admitted.peer.caller,
                                     .refuses_descriptors = admitted.socket->kind().refuses_descriptors,
                                     .secret = std::nullopt,
                                     .on_end = {}});
    count_.fetch_add(1);
    if (const auto& tenant = admitted.peer.caller.door; tenant != nullptr) {
      tenant->door().Connected();
    }
  }
  const int socket = admitted.socket->get();
  const int process = admitted.peer.process->pidfd();
  const uint32_t events = admitted.door() == Door::kFd ? EPOLLIN | EPOLLRDHUP : EPOLLRDHUP;
  const core::Caller caller = admitted.peer.caller;
  uint64_t key = 0;
  bool watched = false;
  {
    // Both are watched before the other thread can forget the connection, and with it the descriptors.
    MutexLock lock(mutex_);
    key = next_key_++;
    connections_.emplace(
        key, Connection{
                 .admitted = std::move(admitted), .accepted = services_.node.clock.Now(), .served = std::move(served)});
    watched = Add(socket, events, Watch::kSocket, key).ok() && Add(process, EPOLLIN, Watch::kProcess, key).ok();
  }
  if (!watched) {
    door::ReportRefusal(services_.node, services_.logger, {.reason = core::kRefusedNoDescriptors, .cause = {}}, &caller,
                        caller.door.get());
    Close(Forget(key));
  }
}

std::optional<ConnectionWatcher::Connection> ConnectionWatcher::Forget(uint64_t key) {
  MutexLock lock(mutex_);
  auto found = connections_.extract(key);
  if (found.empty()) {
    return std::nullopt;
  }
  // Descriptors shared with the server or with a session would stay in the epoll set after our close.
  const AdmittedConnection& admitted = found.mapped().admitted;
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, admitted.socket->get(), nullptr);
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, admitted.peer.process->pidfd(), nullptr);
  return std::move(found.mapped());
}

// The place of the connection is free before it is no longer counted.
void ConnectionWatcher::Close(std::optional<Connection> connection) {
  if (!connection.has_value()) {
    return;
  }
  const bool was_served = connection->served != nullptr;
  const std::shared_ptr<core::Tenant> tenant = connection->admitted.peer.caller.door;
  if (was_served) {
    connection->served->Disconnected();
  }
  connection.reset();
  if (was_served) {
    count_.fetch_sub(1);
    if (tenant != nullptr) {
      tenant->door().Disconnected();
    }
  }
}

void ConnectionWatcher::CloseWhere(const std::function<bool(const AdmittedConnection&)>& selects) {
  std::vector<uint64_t> keys;
  {
    MutexLock lock(mutex_);
    for (const auto& [key, connection] : connections_) {
      if (selects(connection.admitted)) {
        keys.push_back(key);
      }
    }
  }
  for (const uint64_t key : keys) {
    Close(Forget(key));
  }
}

void ConnectionWatcher::CloseWithSessions(const std::shared_ptr<core::Tenant>& tenant) {
  const std::shared_ptr<void> ended(nullptr, [this, inbox = inbox_, tenant](void*) {
    inbox->Post([this, tenant] {
      CloseWhere([&](const AdmittedConnection& connection) { return connection.peer.caller.door == tenant; });
    });
  });
  for (const core::SessionRegistry::Listed& listed : services_.registry.List()) {
    if (&listed.session->tenant() == tenant.get()) {
      // Ending already; this waits for it.
      services_.registry.End(listed.session, core::EndCause::kGrantRevoked, [ended](const core::Reclaimed&) {});
    }
  }
}

void ConnectionWatcher::CloseOperators() {
  inbox_->Post([this] {
    CloseWhere([](const AdmittedConnection& connection) { return connection.door() == Door::kOperator; });
  });
}

void ConnectionWatcher::CloseSilent() {
  const Instant since = services_.node.clock.Now() - silent_timeout_;
  std::vector<uint64_t> silent;
  {
    MutexLock lock(mutex_);
    for (const auto& [key, connection] : connections_) {
      const bool is_silent =
          connection.served != nullptr ? connection.served->SilentSince(since) : connection.accepted < since;
      if (is_silent) {
        silent.push_back(key);
      }
    }
  }
  for (const uint64_t key : silent) {
    std::optional<Connection> connection = Forget(key);
    if (connection.has_value()) {
      door::ReportRefusal(services_.node, services_.logger, {.reason = core::kRefusedSilent, .cause = {}},
                          &connection->admitted.peer.caller, connection->admitted.peer.caller.door.get());
      Close(std::move(connection));
    }
  }
}

}  // namespace rnicd::transport
