#include "client/ctl/output/terminal.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

#include "base/files/unique_fd.h"
#include "gtest/gtest.h"

namespace rnicd::ctl {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLong = std::chrono::minutes(1);

// A terminal whose user is the test.
class TerminalTest : public testing::Test {
 protected:
  TerminalTest() {
    winsize window = {.ws_row = 30, .ws_col = 100, .ws_xpixel = 0, .ws_ypixel = 0};
    int person = -1;
    int program = -1;
    EXPECT_EQ(openpty(&person, &program, nullptr, nullptr, &window), 0);
    person_.Reset(person);
    program_.Reset(program);
  }

  int program() const { return program_.get(); }
  void Press(const std::string& keys) const {
    EXPECT_EQ(write(person_.get(), keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
  }
  // The program's output so far.
  std::string Seen() const {
    std::string seen;
    pollfd ready = {person_.get(), POLLIN, 0};
    while (poll(&ready, 1, 0) > 0 && (ready.revents & POLLIN) != 0) {
      char text[4096];
      const ssize_t count = read(person_.get(), text, sizeof(text));
      if (count <= 0) {
        break;
      }
      seen.append(text, static_cast<size_t>(count));
    }
    return seen;
  }
  tcflag_t Mode() const {
    termios mode = {};
    tcgetattr(program(), &mode);
    return mode.c_lflag;
  }
  void HangUp() { person_.Reset(-1); }

 private:
  UniqueFd person_;
  UniqueFd program_;
};

TEST_F(TerminalTest, TakesTheScreenAndGivesItBackAsItWas) {
  EXPECT_TRUE(Terminal::IsThere(program(), program()));
  const tcflag_t before = Mode();
  {
    Terminal terminal(program(), program());
    EXPECT_EQ(Mode() & (ICANON | ECHO), 0u);
    terminal.Show({"one", "two"});
    EXPECT_EQ(Seen(), "\x1b[?1049h\x1b[?25l\x1b[H\x1b[Kone\r\n\x1b[Ktwo\r\n\x1b[J");
  }
  EXPECT_EQ(Mode(), before);
  EXPECT_EQ(Seen(), "\x1b[?25h\x1b[?1049l");
}

TEST_F(TerminalTest, PipeIsNone) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd reading(ends[0]);
  const UniqueFd writing(ends[1]);
  EXPECT_FALSE(Terminal::IsThere(program(), writing.get()));
  EXPECT_FALSE(Terminal::IsThere(reading.get(), program()));
}

TEST_F(TerminalTest, QEndsItAndOtherKeysDoNot) {
  Terminal terminal(program(), program());
  EXPECT_TRUE(terminal.Wait(milliseconds(1)));
  Press("xyz");
  EXPECT_TRUE(terminal.Wait(milliseconds(20)));
  Press("xq");
  EXPECT_FALSE(terminal.Wait(kLong));
}

TEST_F(TerminalTest, CtrlCEndsItAndDoesNotKill) {
  for (const int signal : {SIGINT, SIGTERM}) {
    Terminal terminal(program(), program());
    raise(signal);
    EXPECT_FALSE(terminal.Wait(kLong));
  }
}

TEST_F(TerminalTest, AnotherSizeIsTimeForAnotherPicture) {
  Terminal terminal(program(), program());
  EXPECT_EQ(terminal.size().rows, 30u);
  EXPECT_EQ(terminal.size().columns, 100u);
  const winsize smaller = {.ws_row = 10, .ws_col = 40, .ws_xpixel = 0, .ws_ypixel = 0};
  EXPECT_EQ(ioctl(program(), TIOCSWINSZ, &smaller), 0);
  raise(SIGWINCH);
  EXPECT_TRUE(terminal.Wait(kLong));
  EXPECT_EQ(terminal.size().rows, 10u);
  EXPECT_EQ(terminal.size().columns, 40u);
  // A frame that fills the screen does not scroll it.
  Seen();
  terminal.Show(std::vector<std::string>(10, std::string(40, 'x')));
  EXPECT_TRUE(Seen().ends_with("xx"));
}

TEST_F(TerminalTest, PersonWhoHangsUpEndsIt) {
  Terminal terminal(program(), program());
  HangUp();
  EXPECT_FALSE(terminal.Wait(kLong));
}

}  // namespace
}  // namespace rnicd::ctl
