#include "tests/support/pipe_reader.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

namespace rnicd::test {
namespace {

std::chrono::steady_clock::time_point After(std::chrono::milliseconds limit) {
  return std::chrono::steady_clock::now() + limit;
}

}  // namespace

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

std::string PipeReader::Text() const {
  MutexLock lock(mutex_);
  return text_;
}

std::optional<std::string> PipeReader::NextLine(std::chrono::milliseconds limit) {
  const auto deadline = After(limit);
  MutexLock lock(mutex_);
  for (;;) {
    const size_t end = text_.find('\n', fetched_);
    if (end != std::string::npos) {
      std::string line = text_.substr(fetched_, end - fetched_);
      fetched_ = end + 1;
      return line;
    }
    if (ended_ || !changed_.WaitUntil(mutex_, deadline)) {
      return std::nullopt;
    }
  }
}

bool PipeReader::WaitFor(std::string_view part, std::chrono::milliseconds limit) {
  const auto deadline = After(limit);
  MutexLock lock(mutex_);
  while (text_.find(part) == std::string::npos) {
    if (ended_ || !changed_.WaitUntil(mutex_, deadline)) {
      return text_.find(part) != std::string::npos;
    }
  }
  return true;
}

bool PipeReader::WaitForEnd(std::chrono::milliseconds limit) {
  const auto deadline = After(limit);
  MutexLock lock(mutex_);
  while (!ended_) {
    if (!changed_.WaitUntil(mutex_, deadline)) {
      return ended_;
    }
  }
  return true;
}

}  // namespace rnicd::test
