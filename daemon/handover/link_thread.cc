#include "daemon/handover/link_thread.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <chrono>

namespace rnicd::handover {
namespace {

constexpr std::chrono::milliseconds kTick{200};

}  // namespace

absl::Status LinkThread::Start(UniqueFd listener, std::optional<Channel> channel) {
  if (!inbox_.valid()) {
    return absl::UnavailableError("eventfd: no descriptor is left");
  }
  listener_ = std::move(listener);
  channel_ = std::move(channel);
  thread_ = std::thread([this] { Run(); });
  return absl::OkStatus();
}

void LinkThread::Stop() {
  if (thread_.joinable()) {
    stopping_.store(true);
    inbox_.WakeUp();
    thread_.join();
    channel_.reset();
  }
}

void LinkThread::Run() {
  while (!stopping_.load()) {
    const short wanted = stalled() && !rests_ ? POLLIN | POLLOUT : POLLIN;
    std::array<pollfd, 4> waits = {{{.fd = inbox_.fd(), .events = POLLIN, .revents = 0},
                                    {.fd = listening_ ? listener_.get() : -1, .events = POLLIN, .revents = 0},
                                    {.fd = channel_.has_value() ? channel_->fd() : -1, .events = wanted, .revents = 0},
                                    {.fd = awaited_.get(), .events = POLLIN, .revents = 0}}};
    const int ready = poll(waits.data(), waits.size(), static_cast<int>(kTick.count()));
    // The channel first: a task may need what has arrived before it.
    if (ready > 0 && waits[2].revents != 0) {
      Read();
    }
    if (ready > 0 && waits[0].revents != 0) {
      inbox_.Run();
    }
    if (ready > 0 && waits[1].revents != 0 && listening_) {
      Accept();
    }
    if (ready > 0 && waits[3].revents != 0) {
      TickAtEndOf(UniqueFd());
    }
    if (const Instant now = SteadyClock().Now(); now >= next_tick_) {
      next_tick_ = now + kTick;
      rests_ = false;
      handler_.OnTick();
    }
  }
  // What was posted before Stop.
  inbox_.Run();
}

void LinkThread::TickAtEndOf(UniqueFd process) {
  awaited_ = std::move(process);
  if (!awaited_.valid()) {
    next_tick_ = Instant();
  }
}

void LinkThread::Accept() {
  UniqueSocket accepted(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (accepted.valid() && IsTrustedPeer(accepted.get())) {
    handler_.OnConnect(Channel(std::move(accepted)));
  }
}

void LinkThread::Read() {
  Check(channel_->Flush());
  rests_ = stalled();
  while (channel_.has_value()) {
    absl::StatusOr<std::optional<Packet>> packet = channel_->Receive();
    if (!packet.ok()) {
      return Check(packet.status());
    }
    if (!packet->has_value()) {
      return;
    }
    handler_.OnPacket(**std::move(packet));
  }
}

void LinkThread::Send(Outgoing packet) {
  if (channel_.has_value()) {
    Check(channel_->Send(std::move(packet)));
  }
}

void LinkThread::Check(const absl::Status& status) {
  if (!status.ok() && channel_.has_value()) {
    channel_.reset();
    handler_.OnEnd();
  }
}

}  // namespace rnicd::handover
