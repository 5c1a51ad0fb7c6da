#include "daemon/transport/acceptor.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "base/errno_status.h"
#include "daemon/core/tenant/observation.h"
#include "daemon/door/refusal.h"
#include "daemon/transport/fd_packet.h"

namespace rnicd::transport {
namespace {

// Connections accepted on one socket before others have their turn.
constexpr int kAcceptsAtOnce = 16;
constexpr int kAcceptorEvents = 4;
// How long nobody is accepted when there is no room to refuse anybody.
constexpr int kPauseMs = 50;
// In place of a door: the descriptor that wakes the thread up.
constexpr uint64_t kWakeUp = UINT64_MAX;

UniqueFd OpenSpare() { return UniqueFd(open("/dev/null", O_RDONLY | O_CLOEXEC)); }

}  // namespace

Acceptor::Acceptor(Admission admission, core::Node& node, const log::Logger& logger, door::Bulkhead& closers,
                   size_t blocked_max, OnAdmitted on_admitted)
    : admission_(std::move(admission)),
      node_(node),
      logger_(logger),
      closers_(closers),
      blocked_max_(blocked_max),
      on_admitted_(std::move(on_admitted)),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      spare_(OpenSpare()) {}

Acceptor::~Acceptor() { Stop(); }

absl::Status Acceptor::Listen(Door door, SocketKind kind, UniqueFd listener) {
  epoll_event event = {.events = EPOLLIN, .data = {.u64 = static_cast<uint64_t>(door)}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, listener.get(), &event) != 0) {
    return absl::UnavailableError(ErrnoDetail("epoll_ctl", errno));
  }
  const auto taken = std::make_shared<Listener>(Listener{.kind = kind, .socket = std::move(listener)});
  inbox_.Post([this, door, taken] { Take(door, std::move(*taken)); });
  return absl::OkStatus();
}

absl::Status Acceptor::Start() {
  epoll_event event = {.events = EPOLLIN, .data = {.u64 = kWakeUp}};
  if (!spare_.valid() || epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, inbox_.fd(), &event) != 0) {
    return absl::UnavailableError(ErrnoDetail("epoll_create1, eventfd, open", errno));
  }
  thread_ = std::thread([this] { Run(); });
  return absl::OkStatus();
}

void Acceptor::Stop() {
  if (thread_.joinable()) {
    stopping_.store(true);
    inbox_.WakeUp();
    thread_.join();
  }
}

void Acceptor::Run() {
  std::array<epoll_event, kAcceptorEvents> events;
  while (!stopping_.load()) {
    const int count = epoll_wait(epoll_.get(), events.data(), kAcceptorEvents, paused_ ? kPauseMs : -1);
    Pause(closers_.size() >= blocked_max_);
    for (int index = 0; index < count; ++index) {
      const uint64_t door = events[static_cast<size_t>(index)].data.u64;
      if (door == kWakeUp) {
        inbox_.Run();
      } else if (!paused_) {
        AcceptSome(static_cast<Door>(door));
      }
    }
  }
  inbox_.Run();
  for (auto& [door, listener] : listeners_) {
    Close(std::move(listener));
  }
}

void Acceptor::AcceptSome(Door door) {
  const auto found = listeners_.find(door);
  for (int accepted = 0; found != listeners_.end() && accepted < kAcceptsAtOnce && AcceptOne(door, found->second);
       ++accepted) {
  }
}

void Acceptor::Take(Door door, Listener listener) {
  Listener earlier = std::exchange(listeners_[door], std::move(listener));
  if (earlier.socket.valid()) {
    // Nobody can come any more, so this ends.
    shutdown(earlier.socket.get(), SHUT_RDWR);
    while (!stopping_.load() && !paused_ && AcceptOne(door, earlier)) {
    }
    Close(std::move(earlier));
    spare_ = OpenSpare();
  }
  Watch();
}

bool Acceptor::AcceptOne(Door door, const Listener& listener) {
  UniqueSocket accepted(accept4(listener.socket.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!accepted.valid()) {
    return GoesOnAfter(errno, listener);
  }
  auto socket = std::make_shared<ClientSocket>(std::move(accepted), listener.kind, closers_);
  if (std::optional<AdmittedConnection> admitted = admission_.Admit(door, std::move(socket)); admitted.has_value()) {
    on_admitted_(*std::move(admitted));
  }
  return true;
}

// A connection that cannot be accepted, as without memory, stays in the queue and would wake this thread for ever.
bool Acceptor::GoesOnAfter(int error, const Listener& listener) {
  switch (error) {
    case EINTR:
    case ECONNABORTED:
      return true;
    case EMFILE:
    case ENFILE:
      return TurnAway(listener);
    case EAGAIN:
    case EINVAL:  // The listener was shut down, and its queue is empty.
      return false;
    default:
      Pause(true);
      return false;
  }
}

// Without a descriptor it would stay there as well.
bool Acceptor::TurnAway(const Listener& listener) {
  spare_.Reset(-1);
  UniqueSocket accepted(accept4(listener.socket.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  const bool was_there = accepted.valid();
  const bool has_failed = !was_there && errno != EAGAIN;
  if (was_there) {
    const ClientSocket turned_away(std::move(accepted), listener.kind, closers_);
    if (listener.kind.carries_packets) {
      SendFdRefusal(turned_away.get(), core::kRefusedNoDescriptors, std::chrono::milliseconds(kPauseMs));
    }
    door::ReportRefusal(node_, logger_, {.reason = core::kRefusedNoDescriptors, .cause = {}}, nullptr);
  }
  spare_ = OpenSpare();
  Pause(has_failed || !spare_.valid());
  return was_there && !paused_;
}

void Acceptor::Pause(bool paused) {
  if (std::exchange(paused_, paused) != paused) {
    Watch();
  }
}

void Acceptor::Watch() {
  for (const auto& [door, listener] : listeners_) {
    epoll_event event = {.events = paused_ ? 0U : EPOLLIN, .data = {.u64 = static_cast<uint64_t>(door)}};
    epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, listener.socket.get(), &event);
  }
}

// After the shutdown nobody can connect. Those who wait are taken out one by one: the close of the listener would
// discard the descriptors that they have sent.
void Acceptor::Close(Listener listener) {
  shutdown(listener.socket.get(), SHUT_RDWR);
  spare_.Reset(-1);
  while (true) {
    UniqueSocket accepted(accept4(listener.socket.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!accepted.valid() && errno != EINTR && errno != ECONNABORTED) {
      return;
    }
    if (accepted.valid()) {
      const ClientSocket turned_away(std::move(accepted), listener.kind, closers_);
    }
  }
}

}  // namespace rnicd::transport
