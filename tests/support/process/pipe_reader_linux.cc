#include "tests/support/process/pipe_reader.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

namespace rnicd::test {

PipeReader::PipeReader(UniqueFd pipe)
    : pipe_(std::move(pipe)), stop_(eventfd(0, EFD_CLOEXEC)), thread_([this] { Run(); }) {}

PipeReader::~PipeReader() {
  eventfd_write(stop_.get(), 1);
  thread_.join();
}

void PipeReader::Run() {
  std::array<pollfd, 2> watched = {
      {{.fd = pipe_.get(), .events = POLLIN, .revents = 0}, {.fd = stop_.get(), .events = POLLIN, .revents = 0}}};
  for (;;) {
    if (poll(watched.data(), watched.size(), -1) < 0 && errno != EINTR) {
      break;
    }
    // Drain the pipe before stopping: a stop must not lose a child's last output.
    if ((watched[0].revents != 0 && !ReadOnce()) || (watched[0].revents == 0 && watched[1].revents != 0)) {
      break;
    }
  }
  MutexLock lock(mutex_);
  ended_ = true;
  changed_.NotifyAll();
}

bool PipeReader::ReadOnce() {
  std::array<char, 4096> buffer;
  const ssize_t count = read(pipe_.get(), buffer.data(), buffer.size());
  if (count > 0) {
    MutexLock lock(mutex_);
    text_.append(buffer.data(), static_cast<size_t>(count));
    changed_.NotifyAll();
  }
  return count > 0 || (count < 0 && errno == EINTR);
}

}  // namespace rnicd::test
