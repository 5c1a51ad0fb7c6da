#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "base/system/unique_socket.h"
#include "daemon/app/observing/pages.h"

namespace rnicd::app {

// The pages, while this generation of the daemon is the one that serves them: all have the same socket, because one
// that serves may make no other. Lifetime: what it is given is not used after Stop. Threads:  safe.
class PageServer {
 public:
  // An empty address: no pages.
  PageServer(std::string address, std::function<PageParts()> parts)
      : configured_(std::move(address)), parts_(std::move(parts)) {}
  ~PageServer() { Stop(); }

  // Start serves on this socket, which listens at the same address.
  void Inherit(UniqueSocket listener);
  // Errors: as Pages::Start.
  absl::Status Start();
  void Stop();
  // A copy of the socket for a newer generation; invalid without pages. Readers wait from now on.
  UniqueSocket Lend();
  // As before Lend.
  absl::Status TakeBack();

  // host:port; empty while there are no pages.
  std::string address() const;

 private:
  const std::string configured_;
  const std::function<PageParts()> parts_;
  mutable Mutex mutex_;
  std::unique_ptr<Pages> pages_ RNICD_GUARDED_BY(mutex_);
  // Before Start, and from Lend until TakeBack; invalid: a new one is made.
  UniqueSocket listener_ RNICD_GUARDED_BY(mutex_);
};

}  // namespace rnicd::app
