#pragma once

#include <chrono>
#include <string>

#include "base/unique_fd.h"

namespace rnicd::kubernetes {

// Waits for changes in a folder that may be absent, be removed, and come back as another one.
// Threads: Wake from any; the rest from one.
class FolderWatch {
 public:
  explicit FolderWatch(std::string folder);

  // Watches the folder that is there now. False when there is none, or the kernel has no watch left: then Wait only
  // hears of Wake. To be called before looking at the folder, so that no change is missed.
  bool Follow();
  // Returns when something changed in the folder, when Wake was called since the last Wait, or when the time is over.
  void Wait(std::chrono::milliseconds patience);
  void Wake() const;

 private:
  bool ReadEvents();
  void Forget();

  const std::string folder_;
  const UniqueFd events_;
  const UniqueFd wake_;
  int watch_ = -1;
};

}  // namespace rnicd::kubernetes
