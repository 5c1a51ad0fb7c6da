#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "log/line_sink.h"

namespace rnicd::log {
namespace {

// Returns what stderr has taken. Another process that shares the open file description may have set O_NONBLOCK.
size_t WriteToStderr(std::string_view text) {
  size_t written = 0;
  while (written < text.size()) {
    const ssize_t count = write(STDERR_FILENO, text.data() + written, text.size() - written);
    if (count > 0) {
      written += static_cast<size_t>(count);
    } else if (count < 0 && errno == EAGAIN) {
      pollfd readers = {.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
      poll(&readers, 1, -1);
    } else if (count == 0 || errno != EINTR) {
      break;
    }
  }
  return written;
}

}  // namespace

std::function<bool(const Line&)> LineSink(bool /*event_log*/) {
  return [cut = false](const Line& line) mutable {
    if (cut && WriteToStderr("\n") == 0) {
      return false;
    }
    const size_t written = WriteToStderr(line.text);
    cut = written != 0 && written != line.text.size();
    return written == line.text.size();
  };
}

}  // namespace rnicd::log
