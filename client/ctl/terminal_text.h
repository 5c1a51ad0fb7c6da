#pragma once

#include <cstddef>
#include <string>
#include <vector>

// What a terminal is told, by control sequences that every current one knows, that of Windows 10 included.
namespace rnicd::ctl {

// Alternate screen on and cursor off, and back.
inline constexpr char kEnterScreen[] = "\x1b[?1049h\x1b[?25l";
inline constexpr char kLeaveScreen[] = "\x1b[?25h\x1b[?1049l";

// These lines from the top, and nothing below them, on a screen of so many rows.
std::string ScreenText(const std::vector<std::string>& lines, size_t rows);

// Whether the key ends what is shown.
inline bool IsEndKey(char key) { return key == 'q' || key == 'Q'; }

}  // namespace rnicd::ctl
