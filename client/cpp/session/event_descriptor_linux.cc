#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "client/cpp/session/event_descriptor.h"
#include "client/cpp/transport_failure.h"

namespace rnicd::inline client {

absl::StatusOr<int> EventDescriptor::Open(int socket) {
  if (epoll_.valid()) {
    return epoll_.get();
  }
  UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  UniqueFd signal(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  epoll_event readable = {.events = EPOLLIN, .data = {}};
  if (!epoll.valid() || !signal.valid() || epoll_ctl(epoll.get(), EPOLL_CTL_ADD, socket, &readable) != 0 ||
      epoll_ctl(epoll.get(), EPOLL_CTL_ADD, signal.get(), &readable) != 0) {
    return TransportFailure(absl::StatusCode::kResourceExhausted,
                            std::string("no descriptor for events: ") + std::strerror(errno));
  }
  epoll_ = std::move(epoll);
  signal_ = std::move(signal);
  socket_ = socket;
  return epoll_.get();
}

// The counter is never full: it is read whenever callbacks run.
void EventDescriptor::Signal() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(signal_.get(), &one, sizeof(one));
}

void EventDescriptor::Clear(bool ended) {
  uint64_t signals = 0;
  [[maybe_unused]] const ssize_t taken = read(signal_.get(), &signals, sizeof(signals));
  if (ended) {
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, socket_, nullptr);
  }
}

}  // namespace rnicd::inline client
