#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "base/files/unique_fd.h"
#include "base/ndk/completion.h"
#include "base/ntstatus.h"
#include "base/system/os.h"
#include "daemon/core/memory/lingering_memory.h"
#include "daemon/core/memory/shared_file.h"
#include "daemon/core/memory/ticket_table.h"
#include "daemon/core/tenant/ledger.h"
#include "ring/client_pipe.h"
#include "ring/queue_end.h"

namespace rnicd::core {

// The completions of a mapped completion queue: memory that its client maps too and reads without a call, and the pipe
// that wakes the client. docs/RINGS.md has what is in the memory.
// Lifetime: a part of its queue.
// Threads:  one call at a time.
class MappedResults {
 public:
  // For a queue that is never deeper than `depth_max`; `charge` counts it with its FileBytes. `os` and `lingering`
  // outlive it. Errors: RINGS_UNAVAILABLE.
  static absl::StatusOr<std::unique_ptr<MappedResults>> Create(Os& os, LingeringMemory& lingering, uint32_t depth_max,
                                                               Charge charge);
  static uint64_t FileBytes(uint32_t depth_max);

  // The tickets for memory and pipe, which end with this.
  void Publish(std::array<OwnedTicket, 2> tickets) { tickets_ = std::move(tickets); }
  // A descriptor for the client; the pipe once. Errors: OBJECT_NOT_FOUND for a doorbell, RINGS_UNAVAILABLE.
  absl::StatusOr<UniqueFd> Duplicate(SharedDescriptor which);

  // Completions that the client has not read, whatever it writes: never more than were pushed.
  uint32_t unread();
  bool HasRoom(uint32_t depth) { return writer_.HasRoom(depth); }
  // There must be room: unread() was below `depth_max`.
  void Push(const Completion& completion);
  // A notification for which the queue was armed.
  void Notify();
  // The completions are lost. Wakes the client, whatever it waits for.
  void Fail(NtStatus status);

 private:
  MappedResults(std::unique_ptr<SharedFile> file, ring::ClientPipe pipe, uint32_t depth_max);

  const std::unique_ptr<SharedFile> file_;
  ring::ClientPipe pipe_;
  ring::QueueWriter writer_;
  std::array<OwnedTicket, 2> tickets_;
};

}  // namespace rnicd::core
