#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/strong_id.h"
#include "daemon/core/memory_object.h"
#include "daemon/core/session_objects.h"

namespace rnicd::core {

struct AllocateArguments {
  uint64_t size = 0;
  uint64_t page_bytes = kNdkPageBytes;
  std::optional<uint32_t> numa_node;
};

struct MemoryTicket {
  MemoryObjectId memory;
  FdTicket ticket{};
};

// The memory objects of a session: the calls that make, seal and release them.
class SessionMemory final : public SessionObjects<MemoryObjectId, MemoryObject> {
 public:
  SessionMemory(SessionRequests& requests, PinBook pins) : SessionObjects(requests), pins_(std::move(pins)) {}

  // Pends unless it is refused at once: a worker populates the memory.
  MaybePending<MemoryTicket> Allocate(const AllocateArguments& arguments, Done<MemoryTicket> done);
  absl::StatusOr<MemoryTicket> Import(uint64_t size);
  absl::StatusOr<std::shared_ptr<MemoryObject>> Find(MemoryObjectId id);
  // The client can block the seal, so it pends until a thread for that has made it. Then every page is mapped and holes
  // are populated, on a worker where that takes long. The end of the session does not wait for a blocked seal.
  // Errors: FD_BLOCKED, if the owner has too many calls that wait; those of MemoryObject::Seal.
  MaybePending<> Seal(const std::shared_ptr<MemoryObject>& memory, const Done<>& done);
  // Unmapping much memory takes long: it then runs on a worker and pends.
  MaybePending<> Release(MemoryObjectId id, const Done<>& done);
  // Releases the object synchronously after a failed import.
  void Drop(MemoryObjectId id);
  // Ends the seals that are blocked with SESSION_ENDING: the session is ending.
  void CancelSeals();

 private:
  // A memory object that is being populated, and who is told when that has ended.
  struct Populating {
    std::shared_ptr<SessionGuard> held;
    std::shared_ptr<MemoryObject> memory;
    std::function<void(std::shared_ptr<MemoryObject> memory, const absl::Status& status)> report;
  };

  // A seal that a client may block.
  struct PendingSeal {
    Populating job;
    std::shared_ptr<FileSealing> sealing;
  };

  absl::StatusOr<std::shared_ptr<MemoryObject>> New(uint64_t size);
  MemoryTicket Publish(const std::shared_ptr<MemoryObject>& memory, FdDirection direction);
  void PopulateNext(Populating job);
  void QueuePopulating(Populating job);
  uint64_t InsertSeal(PendingSeal seal);
  // None if the seal was cancelled.
  std::optional<PendingSeal> TakeSeal(uint64_t key);
  MaybePending<> PopulateSealed(const PendingSeal& seal);
  void FinishSeal(uint64_t key);

  const PinBook pins_;
  Mutex seals_mutex_;
  // Keyed by a number. They hold the session; what blocks does not.
  std::map<uint64_t, PendingSeal> seals_ RNICD_GUARDED_BY(seals_mutex_);
  uint64_t next_seal_ RNICD_GUARDED_BY(seals_mutex_) = 0;
};

}  // namespace rnicd::core
