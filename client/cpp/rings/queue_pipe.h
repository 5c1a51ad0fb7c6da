#pragma once

#include <chrono>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/files/unique_fd.h"

namespace rnicd::inline client {

// This process's end of a mapped queue's pipe, in which the daemon announces what a waiting client asked for.
// Threads: safe but for moving and destroying.
class QueuePipe {
 public:
  // Redeems the ticket. Errors: those of FetchDescriptor.
  static absl::StatusOr<QueuePipe> Fetch(const std::string& fd_socket_path, const std::string& ticket,
                                         std::chrono::milliseconds deadline);
  explicit QueuePipe(UniqueFd pipe) : pipe_(std::move(pipe)) {}

  int descriptor() const { return pipe_.get(); }
  // Waits until it can be read, or the time is over.
  void Wait(std::chrono::nanoseconds time) const;
  // Reads it until it is empty. False when the daemon has closed it.
  bool Drain() const;

 private:
  UniqueFd pipe_;
};

}  // namespace rnicd::inline client
