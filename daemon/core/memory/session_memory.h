#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/strong_id.h"
#include "daemon/core/memory/memory_object.h"
#include "daemon/core/memory/memory_pool.h"
#include "daemon/core/memory/memory_progress.h"
#include "daemon/core/request/session_objects.h"

namespace rnicd::core {

struct AllocateArguments {
  uint64_t size = 0;
  // Absent: the largest pages that the pool has ready for this size; else pages of 4 KiB, which the kernel may make
  // transparent huge pages.
  std::optional<uint64_t> page_bytes = kNdkPageBytes;
  std::optional<uint32_t> numa_node;
  // Not 0: events report the progress of a long allocation; see MemoryProgress.
  uint64_t progress_context = 0;
};

struct MemoryTicket {
  MemoryObjectId memory;
  FdTicket ticket{};
  // What was allocated: the bytes of a page, whether the kernel may use transparent huge pages, and whether the pages
  // were ready in the pool. Meaningless for an import.
  uint64_t page_bytes = kNdkPageBytes;
  bool transparent_huge_pages = false;
  bool from_pool = false;
};

// The memory objects of a session: the calls that make, seal and release them.
class SessionMemory final : public SessionObjects<MemoryObjectId, MemoryObject> {
 public:
  SessionMemory(SessionRequests& requests, PinBook pins) : SessionObjects(requests), pins_(std::move(pins)) {}

  // Pends unless it is refused at once, or the pool has a file of just that size: workers populate the memory.
  MaybePending<MemoryTicket> Allocate(const AllocateArguments& arguments, Done<MemoryTicket> done);
  absl::StatusOr<MemoryTicket> Import(uint64_t size);
  absl::StatusOr<std::shared_ptr<MemoryObject>> Find(MemoryObjectId id);
  // The client can block the seal, so it pends until a thread for that has made it. Then every page is mapped and holes
  // are populated, on a worker where that takes long. The end of the session does not wait for a blocked seal.
  // Errors: FD_BLOCKED, if the owner has too many calls that wait; those of MemoryObject::Seal.
  MaybePending<> Seal(const std::shared_ptr<MemoryObject>& memory, const Done<>& done);
  // Unmapping much memory takes long: it then runs on a worker and pends.
  MaybePending<> Release(MemoryObjectId id, const Done<>& done);
  // Counts items of a batch against the rates as so many more calls: each costs system calls.
  void CountItems(uint64_t items);
  // Releases the object synchronously after a failed import.
  void Drop(MemoryObjectId id);
  // Ends the seals that are blocked with SESSION_ENDING: the session is ending.
  void CancelSeals();

 private:
  // A memory object that is being populated, and the callback that reports the end.
  struct PopulatingJob {
    std::shared_ptr<SessionGuard> held;
    std::shared_ptr<MemoryObject> memory;
    std::function<void(const std::shared_ptr<MemoryObject>& memory, const absl::Status& status)> report;
    // Null when progress is not reported.
    std::shared_ptr<ProgressReport> progress;
  };

  // Memory that is to be allocated.
  struct Allocation {
    AllocateArguments arguments;
    std::shared_ptr<MemoryObject> memory;
    // A file of the pool's, until the memory object has it.
    std::optional<FreshMemory> pooled;
    bool from_pool = false;
    bool transparent_huge_pages = false;
  };

  // A seal that a client may block.
  struct PendingSeal {
    PopulatingJob job;
    std::shared_ptr<FileSealing> sealing;
  };

  absl::Status CheckNew(uint64_t size) const;
  absl::StatusOr<MemoryCharges> ChargeFor(uint64_t size);
  // Charged; the node's pool makes room for it, and may have a file that is `ready`.
  absl::StatusOr<std::shared_ptr<MemoryObject>> New(uint64_t size, const std::optional<PageWish>& wish,
                                                    std::optional<FreshMemory>& ready);
  MemoryTicket Publish(const std::shared_ptr<MemoryObject>& memory, FdDirection direction);
  MemoryTicket PublishAllocated(const Allocation& allocation);
  absl::Status Admit(Allocation& allocation);
  absl::StatusOr<FreshMemory> TakeFresh(Allocation& allocation);
  absl::Status BeginAllocate(Allocation& allocation);
  void QueueAllocating(const std::shared_ptr<Allocation>& allocation, const PopulatingJob& job);
  // On a thread of the populators.
  void Populate(const PopulatingJob& job);
  void QueuePopulating(const PopulatingJob& job);
  void QueuePiece(const PopulatingJob& job);
  void EndPiece(const PopulatingJob& job, Populating::Next next);
  uint64_t InsertSeal(PendingSeal seal);
  // None if the seal was cancelled.
  std::optional<PendingSeal> TakeSeal(uint64_t key);
  MaybePending<> PopulateSealed(const PendingSeal& seal);
  void FinishSeal(uint64_t key);

  const PinBook pins_;
  Mutex seals_mutex_;
  // Keyed by a number. They hold the session; the blocking system call does not.
  std::map<uint64_t, PendingSeal> seals_ RNICD_GUARDED_BY(seals_mutex_);
  uint64_t next_seal_ RNICD_GUARDED_BY(seals_mutex_) = 0;
};

}  // namespace rnicd::core
