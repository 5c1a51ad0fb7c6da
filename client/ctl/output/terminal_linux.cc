#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "base/clock.h"
#include "base/files/unique_fd.h"
#include "client/ctl/output/terminal.h"
#include "client/ctl/output/terminal_text.h"

namespace rnicd::ctl {

struct Terminal::System {
  termios old_mode = {};
  sigset_t old_signals = {};
  UniqueFd signals;
};

bool Terminal::IsTerminal(int descriptor) { return isatty(descriptor) == 1; }

Terminal::Terminal(int input, int output) : input_(input), output_(output), system_(std::make_unique<System>()) {
  sigset_t watched;
  sigemptyset(&watched);
  for (const int signal : {SIGINT, SIGTERM, SIGWINCH}) {
    sigaddset(&watched, signal);
  }
  pthread_sigmask(SIG_BLOCK, &watched, &system_->old_signals);
  system_->signals.Reset(signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
  tcgetattr(input_, &system_->old_mode);
  termios mode = system_->old_mode;
  mode.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  tcsetattr(input_, TCSANOW, &mode);
  Write(kEnterScreen);
}

Terminal::~Terminal() {
  Write(kLeaveScreen);
  tcsetattr(input_, TCSAFLUSH, &system_->old_mode);
  // A signal that arrived meanwhile has had its effect and must not kill the process now.
  signalfd_siginfo signal;
  while (read(system_->signals.get(), &signal, sizeof(signal)) > 0) {
  }
  pthread_sigmask(SIG_SETMASK, &system_->old_signals, nullptr);
}

ScreenSize Terminal::size() const {
  winsize window = {};
  if (ioctl(output_, TIOCGWINSZ, &window) != 0 || window.ws_row == 0 || window.ws_col == 0) {
    return ScreenSize{.rows = 24, .columns = 80};
  }
  return ScreenSize{.rows = window.ws_row, .columns = window.ws_col};
}

void Terminal::Show(const std::vector<std::string>& lines) { Write(ScreenText(lines, size().rows)); }

bool Terminal::Wait(std::chrono::milliseconds time) {
  const Instant deadline = Instant::clock::now() + time;
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Instant::clock::now());
    std::array<pollfd, 2> waits = {pollfd{system_->signals.get(), POLLIN, 0}, pollfd{input_, POLLIN, 0}};
    const int ready =
        poll(waits.data(), waits.size(), static_cast<int>(std::max(left.count(), decltype(left)::rep{0})));
    if (ready == 0) {
      return true;
    }
    signalfd_siginfo signal;
    if (read(system_->signals.get(), &signal, sizeof(signal)) > 0) {
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
