#include "client/ctl/terminal_text.h"

namespace rnicd::ctl {
namespace {

// Cursor to the top, and clearing from the cursor to the end of the line or the screen.
constexpr char kHome[] = "\x1b[H";
constexpr char kClearLine[] = "\x1b[K";
constexpr char kClearRest[] = "\x1b[J";

}  // namespace

std::string ScreenText(const std::vector<std::string>& lines, size_t rows) {
  std::string text = kHome;
  for (size_t index = 0; index < lines.size(); ++index) {
    // Cleared before writing: after a line that fills its row, the cursor is still on the last character.
    text += std::string(index == 0 ? "" : "\n") + kClearLine + lines[index];
  }
  if (lines.size() < rows) {
    text += std::string("\n") + kClearRest;
  }
  return text;
}

}  // namespace rnicd::ctl
