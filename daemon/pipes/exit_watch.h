#pragma once

#include <functional>
#include <memory>
#include <utility>

namespace rnicd::pipes {

// Tells when a process has exited.
// Lifetime: the process's handle outlives it. The destructor waits for `on_exit` while it runs.
class ExitWatch {
 public:
  // Calls `on_exit` once, on a thread of the system's pool, where it must not block. Null when Windows refuses.
  static std::unique_ptr<ExitWatch> Begin(int process, std::function<void()> on_exit);
  ~ExitWatch();
  ExitWatch(const ExitWatch&) = delete;
  ExitWatch& operator=(const ExitWatch&) = delete;

 private:
  explicit ExitWatch(std::function<void()> on_exit) : on_exit_(std::move(on_exit)) {}

  const std::function<void()> on_exit_;
  // The registration; never closed, only unregistered.
  void* wait_ = nullptr;
};

}  // namespace rnicd::pipes
