#include <winsock2.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/system/unique_socket.h"
#include "base/system/winsock.h"
#include "base/windows_status.h"
#include "daemon/rpc/socket/poller.h"

namespace rnicd::rpc {
namespace {

using std::chrono::milliseconds;

// Longest sleep at a time; the alarm of a later time is waited for in several.
constexpr milliseconds kLongestWait{60'000};

SHORT PollBitsOf(uint32_t events) {
  return static_cast<SHORT>(((events & kReadable) != 0 ? POLLRDNORM : 0) |
                            ((events & kWritable) != 0 ? POLLWRNORM : 0));
}

uint32_t EventsOf(SHORT bits) {
  return ((bits & POLLRDNORM) != 0 ? kReadable : 0) | ((bits & POLLWRNORM) != 0 ? kWritable : 0) |
         ((bits & (POLLERR | POLLNVAL)) != 0 ? kFailed : 0) | ((bits & POLLHUP) != 0 ? kHungUp : 0);
}

bool IsSocket(int fd) {
  int type = 0;
  int bytes = sizeof(type);
  return fd >= 0 &&
         getsockopt(static_cast<SOCKET>(fd), SOL_SOCKET, SO_TYPE, reinterpret_cast<char*>(&type), &bytes) == 0;
}

// A datagram socket of the loopback interface that is connected to itself: one datagram in it makes it readable, and
// another process's are discarded.
UniqueSocket OwnSocket() {
  UniqueSocket own(static_cast<int>(socket(AF_INET, SOCK_DGRAM, IPPROTO_UDP)));
  const auto handle = static_cast<SOCKET>(own.get());
  u_long non_blocking = 1;
  const BOOL exclusive = TRUE;
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int bytes = sizeof(address);
  if (!own.valid() || ioctlsocket(handle, static_cast<long>(FIONBIO), &non_blocking) != 0 ||
      setsockopt(handle, SOL_SOCKET, SO_EXCLUSIVEADDRUSE, reinterpret_cast<const char*>(&exclusive),
                 sizeof(exclusive)) != 0 ||
      bind(handle, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 ||
      getsockname(handle, reinterpret_cast<sockaddr*>(&address), &bytes) != 0 ||
      connect(handle, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
    return UniqueSocket();
  }
  return own;
}

// WSAPoll looks at every socket in every wait, so a wait costs time in proportion to the connections of its thread.
class WsaPoller final : public Poller {
 public:
  explicit WsaPoller(UniqueSocket own) : own_(std::move(own)) { polled_.push_back(PollOf(own_.get(), kReadable)); }

  bool Add(int fd, uint32_t events, Key key) override {
    if (!IsSocket(fd) || places_.contains(fd)) {
      return false;
    }
    places_[fd] = polled_.size();
    polled_.push_back(PollOf(fd, events));
    keys_.push_back(key);
    return true;
  }
  void Change(int fd, uint32_t events, Key /*key*/) override {
    if (const auto found = places_.find(fd); found != places_.end()) {
      polled_[found->second].events = PollBitsOf(events);
    }
  }
  // The last one takes its place.
  void Remove(int fd) override {
    const auto found = places_.find(fd);
    if (found == places_.end()) {
      return;
    }
    const size_t place = found->second;
    places_[static_cast<int>(polled_.back().fd)] = place;
    polled_[place] = polled_.back();
    keys_[place - 1] = keys_.back();
    polled_.pop_back();
    keys_.pop_back();
    places_.erase(fd);
  }
  void SetAlarm(Instant due) override { due_ = due; }

  void Wait(bool block, absl::FunctionRef<void(uint32_t events, Key key)> ready) override {
    const int count = WSAPoll(polled_.data(), static_cast<ULONG>(polled_.size()), block ? Timeout() : 0);
    // Collected first: `ready` changes what is polled.
    std::vector<std::pair<uint32_t, Key>> found;
    for (size_t place = 1; count > 0 && place < polled_.size(); ++place) {
      if (polled_[place].revents != 0) {
        found.emplace_back(EventsOf(polled_[place].revents), keys_[place - 1]);
      }
    }
    if (count > 0 && polled_.front().revents != 0) {
      std::array<char, 64> ignored;
      while (recv(static_cast<SOCKET>(own_.get()), ignored.data(), ignored.size(), 0) >= 0) {
      }
    }
    if (due_.has_value() && *due_ <= std::chrono::steady_clock::now()) {
      due_.reset();
      ready(kReadable, kAlarm);
    }
    for (const auto& [events, key] : found) {
      ready(events, key);
    }
  }

  void WakeUp() override { send(static_cast<SOCKET>(own_.get()), "", 1, 0); }

 private:
  static WSAPOLLFD PollOf(int fd, uint32_t events) {
    return {.fd = static_cast<SOCKET>(fd), .events = PollBitsOf(events), .revents = 0};
  }
  // Until the alarm, rounded up: no timer is early.
  int Timeout() const {
    if (!due_.has_value()) {
      return -1;
    }
    const auto left = std::chrono::ceil<milliseconds>(*due_ - std::chrono::steady_clock::now());
    return static_cast<int>(std::clamp(left, milliseconds(0), kLongestWait).count());
  }

  const UniqueSocket own_;
  // The first is own_.
  std::vector<WSAPOLLFD> polled_;
  // Keys of the other sockets, in the same order.
  std::vector<Key> keys_;
  // The index in polled_, by socket.
  std::unordered_map<int, size_t> places_;
  std::optional<Instant> due_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Poller>> Poller::Create() {
  UniqueSocket own = StartWinsock() ? OwnSocket() : UniqueSocket();
  if (!own.valid()) {
    return absl::UnavailableError(WindowsDetail("a socket to wake up by", static_cast<uint32_t>(WSAGetLastError())));
  }
  return std::make_unique<WsaPoller>(std::move(own));
}

}  // namespace rnicd::rpc
