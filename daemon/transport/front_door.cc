#include "daemon/transport/front_door.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "daemon/core/fd_exchange.h"
#include "daemon/core/names.h"
#include "daemon/transport/fd_packet.h"

namespace rnicd::transport {
namespace {

// Period of the search for idle connections and expired grants.
constexpr int kTickMs = 200;
constexpr int kEventsAtOnce = 64;
constexpr uint64_t kWatchBits = 2;
constexpr uint64_t kWatchMask = (1U << kWatchBits) - 1;
// Connections accepted on one socket before others have their turn. Each costs some 100 us, mostly for /proc.
constexpr int kAcceptsAtOnce = 16;

uint64_t Pack(uint64_t key, uint8_t watch) { return key << kWatchBits | watch; }

UniqueFd OpenSpare() { return UniqueFd(open("/dev/null", O_RDONLY | O_CLOEXEC)); }

absl::StatusCode CodeOf(std::string_view refusal) {
  if (refusal == core::kRefusedIdentity) {
    return absl::StatusCode::kUnauthenticated;
  }
  if (refusal == core::kRefusedRole) {
    return absl::StatusCode::kPermissionDenied;
  }
  return refusal == core::kRefusedSilent ? absl::StatusCode::kDeadlineExceeded : absl::StatusCode::kResourceExhausted;
}

absl::Status SystemError(const char* call) { return absl::UnavailableError(absl::StrCat(call, ": ", strerror(errno))); }

}  // namespace

std::string OwnerOf(const core::Caller& caller) {
  if (!caller.container.pod_uid.empty()) {
    return absl::StrCat("pod ", caller.container.pod_uid);
  }
  return caller.container.id.empty() ? absl::StrCat("uid ", caller.uid)
                                     : absl::StrCat("container ", caller.container.id);
}

FrontDoor::FrontDoor(const FrontDoorOptions& options, core::Node& node, core::SessionRegistry& registry,
                     const log::Logger& logger, ConnectionServer& server)
    : options_(options), node_(node), registry_(registry), logger_(logger), server_(server) {}

FrontDoor::~FrontDoor() { Stop(); }

// --- start and stop ---

absl::Status FrontDoor::Start(const SocketDirectory& workloads, const SocketDirectory& operators) {
  RNICD_ASSIGN_OR_RETURN(rung_, ProbeIdentityRung());
  epoll_ = UniqueFd(epoll_create1(EPOLL_CLOEXEC));
  wake_up_ = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  spare_ = OpenSpare();
  if (!epoll_.valid() || !wake_up_.valid() || !spare_.valid()) {
    return SystemError("epoll_create1, eventfd, open");
  }
  RNICD_RETURN_IF_ERROR(Add(wake_up_.get(), EPOLLIN, Watch::kWakeUp, 0));
  RNICD_RETURN_IF_ERROR(OpenDoor(Door::kOperator, operators, core::kAdminSocketName, SOCK_STREAM, 0600));
  RNICD_RETURN_IF_ERROR(OpenDoor(Door::kFd, workloads, core::kFdSocketName, SOCK_SEQPACKET, options_.socket_mode));
  RNICD_RETURN_IF_ERROR(OpenDoor(Door::kWorkload, workloads, core::kRpcSocketName, SOCK_STREAM, options_.socket_mode));
  logger_.Info("front door open", {{"identity", IdentityRungName(rung_)}});
  thread_ = std::thread([this] { Run(); });
  return absl::OkStatus();
}

absl::Status FrontDoor::OpenDoor(Door door, const SocketDirectory& directory, const char* name, int type, mode_t mode) {
  RNICD_ASSIGN_OR_RETURN(UniqueFd listener, directory.Listen(name, type, mode));
  RNICD_RETURN_IF_ERROR(Add(listener.get(), EPOLLIN, Watch::kListener, static_cast<uint64_t>(door)));
  listeners_[door] = std::move(listener);
  return absl::OkStatus();
}

void FrontDoor::StopAccepting() {
  accepting_.store(false);
  eventfd_write(wake_up_.get(), 1);
}

void FrontDoor::Stop() {
  if (!thread_.joinable()) {
    return;
  }
  stopping_.store(true);
  eventfd_write(wake_up_.get(), 1);
  thread_.join();
}

absl::Status FrontDoor::Add(int fd, uint32_t events, Watch watch, uint64_t key) {
  epoll_event event = {};
  event.events = events;
  event.data.u64 = Pack(key, static_cast<uint8_t>(watch));
  return epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0 ? absl::OkStatus() : SystemError("epoll_ctl");
}

// --- the thread ---

void FrontDoor::Run() {
  std::array<epoll_event, kEventsAtOnce> events;
  while (!stopping_.load()) {
    const int count = epoll_wait(epoll_.get(), events.data(), kEventsAtOnce, kTickMs);
    const std::span<epoll_event> ready(events.data(), static_cast<size_t>(std::max(count, 0)));
    // Those who have left come first, then operators, then newcomers: a storm of connections delays none of them.
    std::sort(ready.begin(), ready.end(), [](const epoll_event& one, const epoll_event& other) {
      return UrgencyOf(one.data.u64) < UrgencyOf(other.data.u64);
    });
    for (const epoll_event& event : ready) {
      Handle(event.data.u64);
    }
    if (!accepting_.load()) {
      listeners_.clear();
    }
    CloseFinished();
    Tick();
  }
  listeners_.clear();
  CloseAll();
}

// 0 comes first.
uint64_t FrontDoor::UrgencyOf(uint64_t data) {
  if (static_cast<Watch>(data & kWatchMask) != Watch::kListener) {
    return 0;
  }
  return static_cast<Door>(data >> kWatchBits) == Door::kOperator ? 1 : 2;
}

void FrontDoor::Handle(uint64_t data) {
  const uint64_t key = data >> kWatchBits;
  switch (static_cast<Watch>(data & kWatchMask)) {
    case Watch::kListener:
      return AcceptSome(static_cast<Door>(key));
    case Watch::kWakeUp:
      return ClearWakeUp();
    case Watch::kProcess: {
      const auto found = connections_.find(key);
      if (found != connections_.end()) {
        epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, found->second.peer.process->pidfd(), nullptr);
        // A child that still has the socket open does not keep its parent's objects alive.
        registry_.EndAllOf(found->second.peer.caller.process, core::EndCause::kProcessExited);
        CloseConnection(key);
      }
      return;
    }
    case Watch::kSocket: {
      const auto found = connections_.find(key);
      if (found == connections_.end() || found->second.at_work) {
        return;
      }
      return found->second.door == Door::kFd ? HandleFdPacket(key) : CloseConnection(key);
    }
  }
}

// At most once per period, however many events arrive.
void FrontDoor::Tick() {
  const Instant now = node_.clock.Now();
  if (now < next_tick_) {
    return;
  }
  next_tick_ = now + std::chrono::milliseconds(kTickMs);
  CloseSilent();
  registry_.EndExpired();
}

void FrontDoor::ClearWakeUp() {
  eventfd_t count = 0;
  eventfd_read(wake_up_.get(), &count);
}

// --- accepting ---

void FrontDoor::AcceptSome(Door door) {
  for (int accepted = 0; accepted < kAcceptsAtOnce && listeners_.contains(door) && AcceptOne(door); ++accepted) {
  }
}

bool FrontDoor::AcceptOne(Door door) {
  const int listener = listeners_[door].get();
  UniqueFd socket(accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (socket.valid()) {
    Admit(door, std::move(socket));
    return true;
  }
  if (errno == EMFILE || errno == ENFILE) {
    // Without a descriptor the connection would stay in the queue and wake this thread for ever: accept it with the
    // spare one and close it.
    spare_.Reset(-1);
    UniqueFd turned_away(accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    const bool accepted = turned_away.valid();
    turned_away.Reset(-1);
    spare_ = OpenSpare();
    Refuse(core::kRefusedNoDescriptors, nullptr);
    return accepted;
  }
  return errno == EINTR || errno == ECONNABORTED;
}

bool FrontDoor::IsFull() const {
  return options_.max_connections != 0 && connections_.size() >= options_.max_connections;
}

void FrontDoor::Admit(Door door, UniqueFd socket) {
  // Before the caller is looked up, which costs more than all the rest.
  if (door != Door::kOperator && IsFull()) {
    return Refuse(core::kRefusedLimit, nullptr);
  }
  absl::StatusOr<Peer> peer = IdentifyPeer(socket.get(), rung_, core::Role::kWorkload, options_.proc_folder);
  if (!peer.ok()) {
    return Refuse(absl::IsResourceExhausted(peer.status()) ? core::kRefusedNoDescriptors : core::kRefusedIdentity,
                  nullptr, peer.status());
  }
  if (const std::string_view reason = CheckAdmission(door, peer->caller); !reason.empty()) {
    return Refuse(reason, &peer->caller);
  }
  Adopt(door, std::move(socket), *std::move(peer));
}

std::string_view FrontDoor::CheckAdmission(Door door, core::Caller& caller) const {
  if (door == Door::kOperator) {
    // An operator is admitted even when workloads have taken every place.
    const std::optional<core::Role> role = node_.tenants.RoleOf(caller, geteuid());
    caller.role = role.value_or(core::Role::kWorkload);
    return role ? std::string_view() : core::kRefusedRole;
  }
  const auto of_owner = connections_by_owner_.find(OwnerOf(caller));
  if (options_.max_connections_per_uid != 0 && of_owner != connections_by_owner_.end() &&
      of_owner->second >= options_.max_connections_per_uid) {
    return core::kRefusedUidLimit;
  }
  return {};
}

void FrontDoor::Refuse(std::string_view reason, const core::Caller* caller, const absl::Status& cause) {
  node_.observer.OnConnectionRefused(reason);
  core::Decision decision;
  decision.what = "connection";
  decision.caller = caller;
  decision.status = cause.ok() ? absl::Status(CodeOf(reason), "refused at accept") : cause;
  decision.note = reason;
  node_.observer.OnDecision(decision);
  logger_.Debug("connection refused", {{"reason", reason}, {"cause", std::string(decision.status.message())}});
}

void FrontDoor::Adopt(Door door, UniqueFd socket, Peer peer) {
  const uint64_t key = next_key_++;
  UniqueFd watched(fcntl(socket.get(), F_DUPFD_CLOEXEC, 0));
  const uint32_t events = door == Door::kFd ? EPOLLIN | EPOLLRDHUP : EPOLLRDHUP;
  if (!watched.valid() || !Add(watched.get(), events, Watch::kSocket, key).ok() ||
      !Add(peer.process->pidfd(), EPOLLIN, Watch::kProcess, key).ok()) {
    return Refuse(core::kRefusedNoDescriptors, &peer.caller);
  }
  std::unique_ptr<ServedConnection> served;
  if (door != Door::kFd) {
    served = server_.Serve(std::move(socket), peer.caller);
    if (served == nullptr) {
      return Refuse(core::kRefusedNoDescriptors, &peer.caller);
    }
    connection_count_.fetch_add(1);
  }
  std::string owner = OwnerOf(peer.caller);
  ++connections_by_owner_[owner];
  connections_.emplace(key, Connection{.door = door,
                                       .socket = std::move(watched),
                                       .peer = std::move(peer),
                                       .owner = std::move(owner),
                                       .accepted = node_.clock.Now(),
                                       .served = std::move(served)});
}

// --- the fd socket ---

// The packet goes to a worker, because populating memory takes long; the connection stays counted until it is done.
void FrontDoor::HandleFdPacket(uint64_t key) {
  Connection& connection = connections_.at(key);
  connection.at_work = true;
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, connection.socket.get(), nullptr);
  const core::Caller& from = connection.peer.caller;
  // One owner with many processes gets one round-robin slot.
  node_.workers.PostFor(std::hash<std::string>()(connection.owner), [this, key, socket = connection.socket.get(),
                                                                     caller = from] {
    absl::StatusOr<FdPacket> packet = ReceiveFdPacket(socket);
    if (packet.ok()) {
      // A refused descriptor is closed before the reply is sent.
      const absl::StatusOr<UniqueFd> outcome = core::ExchangeFd(node_, caller, packet->ticket, std::move(packet->file));
      SendFdReply(socket, outcome);
    } else if (ErrorInfoOf(packet.status()).reason != ErrorReason::INTERNAL_FAULT) {
      SendFdReply(socket, packet.status());
    }
    {
      MutexLock lock(mutex_);
      finished_.push_back(key);
    }
    eventfd_write(wake_up_.get(), 1);
  });
}

void FrontDoor::CloseFinished() {
  std::vector<uint64_t> finished;
  {
    MutexLock lock(mutex_);
    finished.swap(finished_);
  }
  for (const uint64_t key : finished) {
    const auto found = connections_.find(key);
    if (found != connections_.end()) {
      found->second.at_work = false;
      CloseConnection(key);
    }
  }
}

// --- ending ---

void FrontDoor::CloseConnection(uint64_t key) {
  const auto found = connections_.find(key);
  if (found == connections_.end() || found->second.at_work) {
    return;
  }
  Connection connection = std::move(found->second);
  connections_.erase(found);
  const auto of_owner = connections_by_owner_.find(connection.owner);
  if (--of_owner->second == 0) {
    connections_by_owner_.erase(of_owner);
  }
  // Descriptors shared with the server or with a session would stay in the epoll set after our close.
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, connection.socket.get(), nullptr);
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, connection.peer.process->pidfd(), nullptr);
  if (connection.served != nullptr) {
    connection_count_.fetch_sub(1);
    connection.served->Disconnected();
  }
}

// A worker still uses the descriptor of a connection whose packet it processes.
void FrontDoor::CloseAll() {
  while (!connections_.empty()) {
    std::vector<uint64_t> keys;
    for (const auto& [key, connection] : connections_) {
      keys.push_back(key);
    }
    for (const uint64_t key : keys) {
      CloseConnection(key);
    }
    if (!connections_.empty()) {
      epoll_event ignored = {};
      epoll_wait(epoll_.get(), &ignored, 1, kTickMs);
      ClearWakeUp();
      CloseFinished();
    }
  }
}

void FrontDoor::CloseSilent() {
  const Instant since = node_.clock.Now() - options_.silent_timeout;
  std::vector<uint64_t> silent;
  for (const auto& [key, connection] : connections_) {
    const bool is_silent = connection.served != nullptr ? connection.served->SilentSince(since)
                                                        : !connection.at_work && connection.accepted < since;
    if (is_silent) {
      silent.push_back(key);
    }
  }
  for (const uint64_t key : silent) {
    Refuse(core::kRefusedSilent, &connections_.at(key).peer.caller);
    CloseConnection(key);
  }
}

}  // namespace rnicd::transport
