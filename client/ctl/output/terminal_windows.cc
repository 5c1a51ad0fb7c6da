#include <windows.h>
// Behind windows.h, whose types they use.
#include <conio.h>
#include <io.h>

#include <algorithm>

#include "base/clock.h"
#include "client/ctl/output/terminal.h"
#include "client/ctl/output/terminal_text.h"

namespace rnicd::ctl {
namespace {

// How soon a change of the window's size shows: nothing announces it.
constexpr DWORD kTurnMilliseconds = 200;

HANDLE HandleOf(int descriptor) { return reinterpret_cast<HANDLE>(_get_osfhandle(descriptor)); }

bool SameSize(const ScreenSize& a, const ScreenSize& b) { return a.rows == b.rows && a.columns == b.columns; }

}  // namespace

struct Terminal::System {
  DWORD input_mode = 0;
  DWORD output_mode = 0;
};

bool Terminal::IsTerminal(int descriptor) {
  DWORD mode = 0;
  return GetConsoleMode(HandleOf(descriptor), &mode) != 0;
}

// Without ENABLE_PROCESSED_INPUT Ctrl-C is a key.
Terminal::Terminal(int input, int output) : input_(input), output_(output), system_(std::make_unique<System>()) {
  GetConsoleMode(HandleOf(input_), &system_->input_mode);
  GetConsoleMode(HandleOf(output_), &system_->output_mode);
  SetConsoleMode(HandleOf(input_), 0);
  SetConsoleMode(HandleOf(output_), system_->output_mode | ENABLE_VIRTUAL_TERMINAL_PROCESSING);
  Write(kEnterScreen);
}

Terminal::~Terminal() {
  Write(kLeaveScreen);
  SetConsoleMode(HandleOf(input_), system_->input_mode);
  SetConsoleMode(HandleOf(output_), system_->output_mode);
}

ScreenSize Terminal::size() const {
  CONSOLE_SCREEN_BUFFER_INFO screen = {};
  if (GetConsoleScreenBufferInfo(HandleOf(output_), &screen) == 0) {
    return ScreenSize{.rows = 24, .columns = 80};
  }
  return ScreenSize{.rows = static_cast<size_t>(screen.srWindow.Bottom - screen.srWindow.Top + 1),
                    .columns = static_cast<size_t>(screen.srWindow.Right - screen.srWindow.Left + 1)};
}

void Terminal::Show(const std::vector<std::string>& lines) { Write(ScreenText(lines, size().rows)); }

bool Terminal::Wait(std::chrono::milliseconds time) {
  constexpr char kCtrlC = 3;
  const Instant deadline = Instant::clock::now() + time;
  const ScreenSize shown = size();
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Instant::clock::now()).count();
    if (left <= 0 || !SameSize(size(), shown)) {
      return true;
    }
    // Each event of the console ends the wait; only keys are characters.
    WaitForSingleObject(HandleOf(input_), std::min(static_cast<DWORD>(left), kTurnMilliseconds));
    while (_kbhit() != 0) {
      const auto key = static_cast<char>(_getch());
      if (IsEndKey(key) || key == kCtrlC) {
        return false;
      }
    }
    FlushConsoleInputBuffer(HandleOf(input_));
  }
}

void Terminal::Write(const std::string& text) const {
  DWORD written = 0;
  WriteFile(HandleOf(output_), text.data(), static_cast<DWORD>(text.size()), &written, nullptr);
}

}  // namespace rnicd::ctl
