#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

// What a terminal is told, by control sequences that every current one knows, that of Windows 10 included.
namespace rnicd::ctl {

// Alternate screen on and cursor off, and back.
inline constexpr char kEnterScreen[] = "\x1b[?1049h\x1b[?25l";
inline constexpr char kLeaveScreen[] = "\x1b[?25h\x1b[?1049l";

// These lines from the top, and nothing below them, on a screen of so many rows.
inline std::string ScreenText(const std::vector<std::string>& lines, size_t rows) {
  // Cursor to the top, and clearing from the cursor to the end of the line or the screen.
  constexpr std::string_view kHome = "\x1b[H";
  constexpr std::string_view kClearLine = "\x1b[K";
  constexpr std::string_view kClearRest = "\x1b[J";
  std::string text(kHome);
  for (size_t index = 0; index < lines.size(); ++index) {
    // Cleared before writing: after a line that fills its row, the cursor is still on the last character.
    text += index == 0 ? "" : "\n";
    text += kClearLine;
    text += lines[index];
  }
  if (lines.size() < rows) {
    text += "\n";
    text += kClearRest;
  }
  return text;
}

// Whether the key ends what is shown.
inline bool IsEndKey(char key) { return key == 'q' || key == 'Q'; }

}  // namespace rnicd::ctl
