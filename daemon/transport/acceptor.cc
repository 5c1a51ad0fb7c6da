#include "daemon/transport/acceptor.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "base/errno_status.h"
#include "base/status.h"
#include "daemon/core/tenant/observation.h"
#include "daemon/door/refusal.h"
#include "daemon/transport/fd_packet.h"

namespace rnicd::transport {
namespace {

// Connections accepted on one socket before others have their turn.
constexpr int kAcceptsAtOnce = 4;
constexpr int kAcceptorEvents = 64;
// What a listener may cost the others: to accept a connection that its client has left, or that is above a limit, takes
// some 10 microseconds. All tenants share the workloads' sockets, where a storm of one has to be worked off for all.
constexpr core::Rate kDoorPace{.per_second = 4096, .burst = 512};
constexpr core::Rate kSharedPace{.per_second = 98304, .burst = 8192};
constexpr std::chrono::milliseconds kRest{1};
// A door that comes too fast again after a longer time than this begins another storm.
constexpr std::chrono::seconds kStormEnds{1};
// How long nobody is accepted when there is no room to refuse anybody.
constexpr int kPauseMs = 50;

UniqueFd OpenSpare() { return UniqueFd(open("/dev/null", O_RDONLY | O_CLOEXEC)); }

int Milliseconds(std::chrono::nanoseconds time) {
  return static_cast<int>(std::max(std::chrono::ceil<std::chrono::milliseconds>(time).count(), int64_t{0}));
}

}  // namespace

struct Acceptor::Listener : std::enable_shared_from_this<Listener> {
  Listener(SocketKind its_kind, NamedListener named)
      : kind(std::move(its_kind)), socket(std::move(named.listener)), file(named.file) {}

  SocketKind kind;
  UniqueFd socket;
  const SocketFile file;
  // Null for the operators.
  std::unique_ptr<core::RateLimiter> pace;
  // When the rest ends; when the last one ended; empty before the first.
  std::optional<Instant> rests_until;
  bool rests = false;
};

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

// Events name the listener by its address: it is erased only between two rounds of events.
absl::Status Acceptor::Listen(SocketKind kind, NamedListener listening) {
  const auto listener = std::make_shared<Listener>(std::move(kind), std::move(listening));
  if (listener->kind.door != Door::kOperator) {
    const core::Rate pace = listener->kind.tenant != nullptr ? kDoorPace : kSharedPace;
    listener->pace = std::make_unique<core::RateLimiter>(node_.clock, pace);
  }
  epoll_event event = {.events = EPOLLIN, .data = {.ptr = listener.get()}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, listener->socket.get(), &event) != 0) {
    return absl::UnavailableError(ErrnoDetail("epoll_ctl", errno));
  }
  inbox_.Post([this, listener] { Take(listener); });
  return absl::OkStatus();
}

void Acceptor::Leave(std::shared_ptr<core::Tenant> tenant, Inbox::Task done) {
  inbox_.Post([this, tenant = std::move(tenant), done = std::move(done)] {
    for (const Door door : {Door::kWorkload, Door::kFd}) {
      if (const auto found = listeners_.extract({door, tenant.get()}); !found.empty()) {
        Close(*found.mapped());
      }
    }
    done();
  });
}

void Acceptor::Discard(SocketKind kind, UniqueFd listening) {
  const auto listener =
      std::make_shared<Listener>(std::move(kind), NamedListener{.listener = std::move(listening), .file = {}});
  inbox_.Post([this, listener] { Close(*listener); });
}

absl::Status Acceptor::Start() {
  epoll_event event = {.events = EPOLLIN, .data = {.ptr = nullptr}};
  if (!spare_.valid() || epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, inbox_.fd(), &event) != 0) {
    return absl::UnavailableError(ErrnoDetail("epoll_create1, eventfd, open", errno));
  }
  try {
    thread_ = std::thread([this] { Run(); });
  } catch (const std::system_error& error) {
    return absl::UnavailableError(error.what());
  }
  return absl::OkStatus();
}

void Acceptor::Stop() {
  if (thread_.joinable()) {
    stopping_.store(true);
    inbox_.WakeUp();
    thread_.join();
  }
}

// A thread that was not started, or has ended, has no say.
void Acceptor::RunAndWait(Inbox::Task task) {
  if (!thread_.joinable()) {
    return task();
  }
  const auto done = std::make_shared<std::promise<void>>();
  inbox_.Post([task = std::move(task), done] {
    task();
    done->set_value();
  });
  done->get_future().wait();
}

absl::StatusOr<std::vector<HandedSocket>> Acceptor::Lend() {
  absl::StatusOr<std::vector<HandedSocket>> copies;
  RunAndWait([&] {
    lent_ = true;
    for (const auto& [place, listener] : listeners_) {
      Watch(*listener);
    }
    copies = Copies();
  });
  return copies;
}

absl::StatusOr<std::vector<HandedSocket>> Acceptor::Copies() const {
  std::vector<HandedSocket> copies;
  for (const auto& [place, listener] : listeners_) {
    const core::Tenant* const tenant = place.second;
    copies.push_back({.door = place.first,
                      .grant = tenant == nullptr ? GrantId{} : tenant->grant(),
                      .listener = UniqueFd(fcntl(listener->socket.get(), F_DUPFD_CLOEXEC, 0)),
                      .file = listener->file});
    if (!copies.back().listener.valid()) {
      return absl::UnavailableError(ErrnoDetail("fcntl", errno));
    }
  }
  return copies;
}

void Acceptor::TakeBack() {
  RunAndWait([this] {
    lent_ = false;
    for (const auto& [place, listener] : listeners_) {
      Watch(*listener);
    }
  });
}

void Acceptor::Run() {
  std::array<epoll_event, kAcceptorEvents> events;
  while (!stopping_.load()) {
    const int count = epoll_wait(epoll_.get(), events.data(), kAcceptorEvents, Timeout());
    Pause(closers_.size() >= blocked_max_);
    WakeRested();
    bool has_tasks = false;
    for (int index = 0; index < count; ++index) {
      auto* const listener = static_cast<Listener*>(events[static_cast<size_t>(index)].data.ptr);
      if (listener == nullptr) {
        has_tasks = true;
      } else if (!paused_ && !lent_) {
        AcceptSome(*listener);
      }
    }
    if (has_tasks) {
      inbox_.Run();
    }
  }
  inbox_.Run();
  for (auto& [place, listener] : listeners_) {
    if (!lent_) {
      Close(*listener);
    }
  }
}

void Acceptor::AcceptSome(Listener& listener) {
  for (int accepted = 0; accepted < kAcceptsAtOnce; ++accepted) {
    if (listener.pace != nullptr && listener.pace->Take().has_value()) {
      return Rest(listener);
    }
    if (!AcceptOne(listener)) {
      if (listener.pace != nullptr) {
        listener.pace->Undo();
      }
      return;
    }
  }
  // Others have come meanwhile, and a storm leaves this thread no other pause.
  std::this_thread::yield();
}

void Acceptor::Rest(Listener& listener) {
  const Instant now = node_.clock.Now();
  if (!listener.rests_until.has_value() || now >= *listener.rests_until + kStormEnds) {
    ReportStorm(listener.kind.tenant.get());
  }
  listener.rests = true;
  listener.rests_until = now + kRest;
  Watch(listener);
  resting_.push_back(listener.weak_from_this());
}

void Acceptor::ReportStorm(core::Tenant* tenant) const {
  core::Decision decision;
  decision.what = "connection";
  decision.status = MakeError(ErrorReason::RATE_LIMITED);
  decision.note = core::kStorm;
  if (tenant != nullptr) {
    tenant->door().Stormed();
    decision.tenant = tenant->name();
    decision.workload = tenant->workload();
  }
  node_.observer.Report(decision);
  logger_.Warning("connections come too fast", {{"tenant", std::string(decision.tenant)}});
}

// All rest equally long, so the first in the queue is awakened first.
void Acceptor::WakeRested() {
  const Instant now = node_.clock.Now();
  while (!resting_.empty()) {
    const std::shared_ptr<Listener> listener = resting_.front().lock();
    if (listener != nullptr && now < *listener->rests_until) {
      return;
    }
    resting_.pop_front();
    if (listener != nullptr) {
      listener->rests = false;
      Watch(*listener);
    }
  }
}

int Acceptor::Timeout() const {
  if (paused_) {
    return kPauseMs;
  }
  const std::shared_ptr<Listener> next = resting_.empty() ? nullptr : resting_.front().lock();
  if (next == nullptr) {
    return resting_.empty() ? -1 : 0;
  }
  return Milliseconds(*next->rests_until - node_.clock.Now());
}

void Acceptor::Take(std::shared_ptr<Listener> listener) {
  std::shared_ptr<Listener>& place = listeners_[{listener->kind.door, listener->kind.tenant.get()}];
  const std::shared_ptr<Listener> earlier = std::exchange(place, std::move(listener));
  if (earlier != nullptr) {
    // Nobody can come any more, so this ends.
    shutdown(earlier->socket.get(), SHUT_RDWR);
    while (!stopping_.load() && !paused_ && AcceptOne(*earlier)) {
    }
    Close(*earlier);
  }
  Watch(*place);
}

bool Acceptor::AcceptOne(const Listener& listener) {
  UniqueSocket accepted(accept4(listener.socket.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!accepted.valid()) {
    return GoesOnAfter(errno, listener);
  }
  auto socket = std::make_shared<ClientSocket>(std::move(accepted), listener.kind, closers_);
  if (std::optional<AdmittedConnection> admitted = admission_.Admit(std::move(socket)); admitted.has_value()) {
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
    if (listener.kind.carries_packets()) {
      SendFdRefusal(turned_away.get(), core::kRefusedNoDescriptors, std::chrono::milliseconds(kPauseMs));
    }
    door::ReportRefusal(node_, logger_, {.reason = core::kRefusedNoDescriptors, .cause = {}}, nullptr,
                        listener.kind.tenant.get());
  }
  spare_ = OpenSpare();
  Pause(has_failed || !spare_.valid());
  return was_there && !paused_;
}

void Acceptor::Pause(bool paused) {
  if (std::exchange(paused_, paused) != paused) {
    for (const auto& [place, listener] : listeners_) {
      Watch(*listener);
    }
  }
}

// A lent one may be shut down by the other daemon, which is to wake this thread but once.
void Acceptor::Watch(Listener& listener) const {
  const uint32_t quiet = lent_ ? EPOLLET : 0U;
  epoll_event event = {.events = lent_ || paused_ || listener.rests ? quiet : EPOLLIN, .data = {.ptr = &listener}};
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, listener.socket.get(), &event);
}

// After the shutdown nobody can connect. Those who wait are taken out one by one: the close of the listener would
// discard the descriptors that they have sent. Another daemon's copy would keep it in the epoll set.
void Acceptor::Close(Listener& listener) {
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, listener.socket.get(), nullptr);
  shutdown(listener.socket.get(), SHUT_RDWR);
  spare_.Reset(-1);
  while (true) {
    UniqueSocket accepted(accept4(listener.socket.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!accepted.valid() && errno != EINTR && errno != ECONNABORTED) {
      break;
    }
    if (accepted.valid()) {
      const ClientSocket turned_away(std::move(accepted), listener.kind, closers_);
    }
  }
  listener.socket.Reset(-1);
  spare_ = OpenSpare();
}

}  // namespace rnicd::transport
