#pragma once

#include <chrono>
#include <string>

#include "base/files/unique_fd.h"

namespace rnicd::kubernetes {

// Waits for changes in a folder that may be absent, be removed, and be created again.
// Threads: any thread may call Wake; one thread calls the rest.
class FolderWatch {
 public:
  explicit FolderWatch(std::string folder);

  // Watches the current folder. False when there is none, or the kernel has no watch left: then only Wake interrupts
  // Wait. Call it before looking at the folder, so that no change is missed.
  bool Follow();
  // Returns when something changed in the folder, when Wake was called since the last Wait, or when the timeout passes.
  void Wait(std::chrono::milliseconds timeout);
  void Wake() const;

 private:
  bool ReadEvents();
  void RemoveWatch();

  const std::string folder_;
  const UniqueFd events_;
  const UniqueFd wake_;
  int watch_ = -1;
};

}  // namespace rnicd::kubernetes
