#include "daemon/transport/front_door.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/errno_status.h"
#include "base/status.h"
#include "daemon/core/tenant/observation.h"
#include "daemon/door/refusal.h"
#include "daemon/transport/fd_service.h"

namespace rnicd::transport {
namespace {

// Period of the search for idle connections, expired grants and removed sockets.
constexpr int kTickMs = 200;
constexpr int kEventsAtOnce = 64;
// Sockets whose clients block their close, while others are still accepted: at the shared sockets, and at the doors of
// grants, which go on when those at the shared ones have to wait.
constexpr size_t kBlockedMax = 4096;
constexpr size_t kBlockedMaxOfDoors = 2 * kBlockedMax;
constexpr uint64_t kWatchBits = 2;
constexpr uint64_t kWatchMask = (1U << kWatchBits) - 1;

uint64_t Pack(uint64_t key, uint8_t watch) { return key << kWatchBits | watch; }

}  // namespace

FrontDoor::FrontDoor(FrontDoorOptions options, const door::Services& services)
    : options_(std::move(options)), services_(services), handover_(services.node, services.bulkhead) {}

FrontDoor::~FrontDoor() { Stop(); }

// --- start and stop ---

absl::Status FrontDoor::Start(const SocketDirectories& directories) {
  RNICD_ASSIGN_OR_RETURN(const IdentityRung rung, ProbeIdentityRung());
  epoll_ = UniqueFd(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_.valid() || !inbox_->valid()) {
    return absl::UnavailableError(ErrnoDetail("epoll_create1, eventfd", errno));
  }
  RNICD_RETURN_IF_ERROR(Add(inbox_->fd(), EPOLLIN, Watch::kWakeUp, 0));
  acceptors_ = {MakeAcceptor(rung, kBlockedMax), MakeAcceptor(rung, SIZE_MAX), MakeAcceptor(rung, kBlockedMaxOfDoors)};
  grant_doors_ = std::make_unique<GrantDoors>(
      directories.doors,
      GrantDoors::Options{.socket_mode = options_.socket_mode,
                          .run = [inbox = inbox_](Inbox::Task task) { inbox->Post(std::move(task)); },
                          .disconnect = [this](const auto& tenant) { CloseWithSessions(tenant); }},
      services_.node.clock, services_.logger, AcceptorOf(Thread::kDoors));
  std::vector<SocketName> names = WorkloadSockets(directories.workloads, options_.socket_mode);
  names.insert(names.begin(), OperatorSocket(directories.operators));
  sockets_ = std::make_unique<DoorSockets>(names, services_.logger, [this](SocketKind kind, UniqueFd listener) {
    const Thread thread = kind.door == Door::kOperator ? Thread::kOperators : Thread::kWorkloads;
    return AcceptorOf(thread).Listen(std::move(kind), std::move(listener));
  });
  RNICD_ASSIGN_OR_RETURN(const SocketKind kind, sockets_->Open());
  thread_ = std::thread([this] { Run(); });
  for (const Thread thread : {Thread::kOperators, Thread::kDoors, Thread::kWorkloads}) {
    RNICD_RETURN_IF_ERROR(AcceptorOf(thread).Start());
  }
  services_.logger.Info("front door open",
                        {{"identity", IdentityRungName(rung)},
                         {"descriptors", kind.refuses_descriptors ? "refused_by_kernel" : "looked_for"}});
  return absl::OkStatus();
}

// Places of its own, so that those at the shared sockets take none from those who have a door.
std::unique_ptr<Acceptor> FrontDoor::MakeAcceptor(IdentityRung rung, size_t blocked_max) {
  auto places = std::make_shared<door::Places>(options_.limits.max, options_.limits.max_per_owner);
  Admission admission({.rung = rung, .rate = options_.limits.rate, .proc_folder = options_.proc_folder}, services_.node,
                      services_.logger, std::move(places));
  return std::make_unique<Acceptor>(std::move(admission), services_.node, services_.logger, services_.bulkhead,
                                    blocked_max, [this](AdmittedConnection admitted) { Adopt(std::move(admitted)); });
}

std::optional<std::string> FrontDoor::trouble() const {
  std::optional<std::string> trouble = sockets_->trouble();
  return trouble.has_value() ? trouble : grant_doors_->trouble();
}

void FrontDoor::StopAccepting() {
  sockets_->Remove();
  grant_doors_->StopAccepting();
  for (const std::unique_ptr<Acceptor>& acceptor : acceptors_) {
    acceptor->Stop();
  }
}

void FrontDoor::Stop() {
  if (!thread_.joinable()) {
    return;
  }
  StopAccepting();
  stopping_.store(true);
  inbox_->WakeUp();
  thread_.join();
}

void FrontDoor::Post(Thread thread, Inbox::Task task) {
  thread == Thread::kWatcher ? inbox_->Post(std::move(task)) : AcceptorOf(thread).Post(std::move(task));
}

absl::Status FrontDoor::Add(int fd, uint32_t events, Watch watch, uint64_t key) {
  epoll_event event = {};
  event.events = events;
  event.data.u64 = Pack(key, static_cast<uint8_t>(watch));
  return epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0
             ? absl::OkStatus()
             : absl::UnavailableError(ErrnoDetail("epoll_ctl", errno));
}

// --- the thread that watches ---

void FrontDoor::Run() {
  std::array<epoll_event, kEventsAtOnce> events;
  while (!stopping_.load()) {
    const int count = epoll_wait(epoll_.get(), events.data(), kEventsAtOnce, kTickMs);
    for (const epoll_event& event : std::span(events.data(), static_cast<size_t>(std::max(count, 0)))) {
      Handle(event.data.u64);
    }
    Tick();
  }
  CloseAll();
}

void FrontDoor::Handle(uint64_t data) {
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

void FrontDoor::HandleExit(uint64_t key) {
  std::optional<Connection> connection = Forget(key);
  if (connection.has_value()) {
    // A child that still has the socket open does not keep its parent's objects alive.
    services_.registry.EndAllOf(connection->admitted.peer.caller.process, core::EndCause::kProcessExited);
    Close(std::move(connection));
  }
}

void FrontDoor::HandleSocket(uint64_t key) {
  std::optional<Connection> connection = Forget(key);
  if (connection.has_value() && connection->admitted.door() == Door::kFd) {
    ServeFdPacket(handover_, connection->admitted);
  } else {
    Close(std::move(connection));
  }
}

// At most once per period, however many events arrive.
void FrontDoor::Tick() {
  const Instant now = services_.node.clock.Now();
  if (now < next_tick_) {
    return;
  }
  next_tick_ = now + std::chrono::milliseconds(kTickMs);
  CloseSilent();
  services_.registry.EndExpired();
  sockets_->Restore();
  grant_doors_->Tick();
}

// --- connections ---

void FrontDoor::Adopt(AdmittedConnection admitted) {
  std::unique_ptr<door::ServedConnection> served;
  if (admitted.door() != Door::kFd) {
    served = services_.server.Serve({.socket = ClientSocket::DescriptorOf(admitted.socket),
                                     .caller = admitted.peer.caller,
                                     .refuses_descriptors = admitted.socket->kind().refuses_descriptors,
                                     .secret = std::nullopt,
                                     .on_end = {}});
    connection_count_.fetch_add(1);
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

std::optional<FrontDoor::Connection> FrontDoor::Forget(uint64_t key) {
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
void FrontDoor::Close(std::optional<Connection> connection) {
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
    connection_count_.fetch_sub(1);
    if (tenant != nullptr) {
      tenant->door().Disconnected();
    }
  }
}

void FrontDoor::CloseAll(const core::Tenant* tenant) {
  std::vector<uint64_t> keys;
  {
    MutexLock lock(mutex_);
    for (const auto& [key, connection] : connections_) {
      if (tenant == nullptr || connection.admitted.peer.caller.door.get() == tenant) {
        keys.push_back(key);
      }
    }
  }
  for (const uint64_t key : keys) {
    Close(Forget(key));
  }
}

void FrontDoor::CloseWithSessions(const std::shared_ptr<core::Tenant>& tenant) {
  const std::shared_ptr<void> ended(
      nullptr, [this, inbox = inbox_, tenant](void*) { inbox->Post([this, tenant] { CloseAll(tenant.get()); }); });
  for (const core::SessionRegistry::Listed& listed : services_.registry.List()) {
    if (&listed.session->tenant() == tenant.get()) {
      // Ending already; this waits for it.
      services_.registry.End(listed.session, core::EndCause::kGrantRevoked, [ended](const core::Reclaimed&) {});
    }
  }
}

void FrontDoor::CloseSilent() {
  const Instant since = services_.node.clock.Now() - options_.limits.silent_timeout;
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
