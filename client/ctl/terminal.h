#pragma once

#include <signal.h>
#include <termios.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "base/unique_fd.h"

namespace rnicd::ctl {

// Of a screen, in characters; 0 where there is no bound.
struct ScreenSize {
  size_t rows = 0;
  size_t columns = 0;
};

// A screen that is drawn again and again, and the keys of the person before it.
// Lifetime: make it before the first gRPC object: it blocks SIGINT, SIGTERM and SIGWINCH, and the threads of gRPC must
//           inherit that. Its destructor gives the terminal back as it was, and restores the signals.
// Threads:  one.
class Terminal {
 public:
  // Whether both are a terminal.
  static bool IsThere(int input, int output);

  // Turns echo off and takes the screen; what was on it comes back at the end.
  Terminal(int input, int output);
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  ~Terminal();

  ScreenSize size() const;
  // The lines fill the screen from its top; they must fit.
  void Show(const std::vector<std::string>& lines);
  // True when the time is over or the screen has another size; false when the person has pressed q or Ctrl-C, and when
  // nobody is there any more.
  bool Wait(std::chrono::milliseconds time);

 private:
  void Write(const std::string& text) const;

  const int input_;
  const int output_;
  termios old_mode_ = {};
  sigset_t old_signals_ = {};
  UniqueFd signals_;
};

}  // namespace rnicd::ctl
