#pragma once

#include <chrono>
#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/process/child_process.h"

namespace rnicd::bench {

// With several processors the crowd runs only on the last one, and nothing else does: the processor time of the clients
// must not affect the result. The daemon does the work they cause on the victim's processors.
void KeepTo(bool the_last_processor);

// The value below which this part of them is; `values` are not empty.
double Percentile(std::vector<double> values, double part);

// Processes of this program that another user runs beside the victim, with these arguments. They run from the start.
// Lifetime: the destructor kills them.
class Crowd {
 public:
  // Ends the program if they cannot be started.
  Crowd(int processes, const std::vector<std::string>& arguments);

  // Stops them while the victim runs alone; what they hold stays open.
  void Pause() { SignalAll(SIGSTOP); }
  void Continue() { SignalAll(SIGCONT); }
  std::chrono::milliseconds ProcessorTime() const;
  // Ends the program if one of them has ended.
  void MustRun();

 private:
  void SignalAll(int signal);

  std::vector<std::unique_ptr<test::ChildProcess>> processes_;
};

}  // namespace rnicd::bench
