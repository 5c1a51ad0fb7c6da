#include "tests/bench/crowd.h"

#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <utility>

#include "tests/support/process/processor_time.h"
#include "tests/support/process/temp_dir.h"

namespace rnicd::bench {

void KeepTo(bool the_last_processor) {
  const unsigned count = std::thread::hardware_concurrency();
  if (count < 2) {
    return;
  }
  cpu_set_t set;
  CPU_ZERO(&set);
  for (unsigned processor = 0; processor < count; ++processor) {
    if ((processor == count - 1) == the_last_processor) {
      CPU_SET(processor, &set);
    }
  }
  sched_setaffinity(0, sizeof(set), &set);
}

double Percentile(std::vector<double> values, double part) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(part * static_cast<double>(values.size() - 1))];
}

Crowd::Crowd(int processes, const std::vector<std::string>& arguments) {
  static const std::string program = test::ExecutableForEveryone(std::filesystem::read_symlink("/proc/self/exe"));
  std::vector<std::string> command = {program};
  command.insert(command.end(), arguments.begin(), arguments.end());
  for (int i = 0; i < processes; ++i) {
    auto child = test::ChildProcess::Start({.command = command, .uid = test::WorkloadUid()});
    if (!child.ok()) {
      std::fprintf(stderr, "no crowd: %s\n", child.status().ToString().c_str());
      std::exit(1);
    }
    processes_.push_back(*std::move(child));
  }
}

std::chrono::milliseconds Crowd::ProcessorTime() const {
  std::chrono::milliseconds time{0};
  for (const auto& process : processes_) {
    time += test::ProcessorTimeOf(process->pid());
  }
  return time;
}

void Crowd::MustRun() {
  for (const auto& process : processes_) {
    if (!process->running()) {
      std::fprintf(stderr, "one of the crowd has ended: %s\n", process->errors().Text().c_str());
      std::exit(1);
    }
  }
}

void Crowd::SignalAll(int signal) {
  for (const auto& process : processes_) {
    process->Signal(signal);
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
}

}  // namespace rnicd::bench
