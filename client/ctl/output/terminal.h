#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace rnicd::ctl {

// Size of a screen, in characters; 0: unbounded.
struct ScreenSize {
  size_t rows = 0;
  size_t columns = 0;
};

// A screen that is redrawn repeatedly, and the user's keys.
// Lifetime: create it before the first Client: on Linux it blocks SIGINT, SIGTERM and SIGWINCH, and librnicd's thread
//           must inherit that. Its destructor restores the terminal and the signals.
// Threads:  one.
class Terminal {
 public:
  // Whether this descriptor is a terminal.
  static bool IsTerminal(int descriptor);
  // Whether both descriptors are terminals.
  static bool IsThere(int input, int output) { return IsTerminal(input) && IsTerminal(output); }

  // Turns echo off and switches to the alternate screen; the previous content is restored at the end.
  Terminal(int input, int output);
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  ~Terminal();

  ScreenSize size() const;
  // The lines fill the screen from its top; they must fit.
  void Show(const std::vector<std::string>& lines);
  // True on timeout or when the screen was resized; false when the user pressed q or Ctrl-C, or the terminal was
  // closed.
  bool Wait(std::chrono::milliseconds time);

 private:
  void Write(const std::string& text) const;

  const int input_;
  const int output_;
  // How the terminal was before, and what the system wakes the wait by.
  struct System;
  std::unique_ptr<System> system_;
};

}  // namespace rnicd::ctl
