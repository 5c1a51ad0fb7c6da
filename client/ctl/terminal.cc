#include "client/ctl/terminal.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/clock.h"

namespace rnicd::ctl {
namespace {

// Control sequences supported by every current terminal: alternate screen on and off, cursor off and on, cursor to the
// top, and clearing from the cursor to the end of the line or the screen.
constexpr char kEnter[] = "\x1b[?1049h\x1b[?25l";
constexpr char kLeave[] = "\x1b[?25h\x1b[?1049l";
constexpr char kHome[] = "\x1b[H";
constexpr char kClearLine[] = "\x1b[K";
constexpr char kClearRest[] = "\x1b[J";

bool IsEndKey(char key) { return key == 'q' || key == 'Q'; }

}  // namespace

bool Terminal::IsThere(int input, int output) { return isatty(input) == 1 && isatty(output) == 1; }

Terminal::Terminal(int input, int output) : input_(input), output_(output) {
  sigset_t watched;
  sigemptyset(&watched);
  for (const int signal : {SIGINT, SIGTERM, SIGWINCH}) {
    sigaddset(&watched, signal);
  }
  pthread_sigmask(SIG_BLOCK, &watched, &old_signals_);
  signals_.Reset(signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
  tcgetattr(input_, &old_mode_);
  termios mode = old_mode_;
  mode.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  tcsetattr(input_, TCSANOW, &mode);
  Write(kEnter);
}

Terminal::~Terminal() {
  Write(kLeave);
  tcsetattr(input_, TCSAFLUSH, &old_mode_);
  // A signal that arrived meanwhile has had its effect and must not kill the process now.
  signalfd_siginfo signal;
  while (read(signals_.get(), &signal, sizeof(signal)) > 0) {
  }
  pthread_sigmask(SIG_SETMASK, &old_signals_, nullptr);
}

ScreenSize Terminal::size() const {
  winsize window = {};
  if (ioctl(output_, TIOCGWINSZ, &window) != 0 || window.ws_row == 0 || window.ws_col == 0) {
    return ScreenSize{.rows = 24, .columns = 80};
  }
  return ScreenSize{.rows = window.ws_row, .columns = window.ws_col};
}

void Terminal::Show(const std::vector<std::string>& lines) {
  std::string text = kHome;
  for (size_t index = 0; index < lines.size(); ++index) {
    // Cleared before writing: after a line that fills its row, the cursor is still on the last character.
    text += std::string(index == 0 ? "" : "\n") + kClearLine + lines[index];
  }
  if (lines.size() < size().rows) {
    text += std::string("\n") + kClearRest;
  }
  Write(text);
}

bool Terminal::Wait(std::chrono::milliseconds time) {
  const Instant deadline = Instant::clock::now() + time;
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Instant::clock::now());
    std::array<pollfd, 2> waits = {pollfd{signals_.get(), POLLIN, 0}, pollfd{input_, POLLIN, 0}};
    const int ready =
        poll(waits.data(), waits.size(), static_cast<int>(std::max(left.count(), decltype(left)::rep{0})));
    if (ready == 0) {
      return true;
    }
    signalfd_siginfo signal;
    if (read(signals_.get(), &signal, sizeof(signal)) > 0) {
      return signal.ssi_signo == SIGWINCH;
    }
    char key = 0;
    if (waits[1].revents != 0 && (read(input_, &key, 1) != 1 || IsEndKey(key))) {
      return false;
    }
  }
}

void Terminal::Write(const std::string& text) const {
  for (size_t done = 0; done < text.size();) {
    const ssize_t count = write(output_, text.data() + done, text.size() - done);
    if (count < 0 && errno != EINTR) {
      return;  // The terminal is closed, and Wait will report it.
    }
    done += static_cast<size_t>(std::max<ssize_t>(count, 0));
  }
}

}  // namespace rnicd::ctl
