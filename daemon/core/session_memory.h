#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
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
  // Sealing maps every page, and populates holes; where that takes long it runs on a worker and pends.
  MaybePending<> Seal(const std::shared_ptr<MemoryObject>& memory, const Done<>& done);
  // Unmapping much memory takes long: it then runs on a worker and pends.
  MaybePending<> Release(MemoryObjectId id, const Done<>& done);
  // Releases the object synchronously after a failed import.
  void Drop(MemoryObjectId id);

 private:
  // A memory object that is being populated, and who is told when that has ended.
  struct Populating {
    std::shared_ptr<SessionGuard> held;
    std::shared_ptr<MemoryObject> memory;
    std::function<void(std::shared_ptr<MemoryObject> memory, const absl::Status& status)> report;
  };

  absl::StatusOr<std::shared_ptr<MemoryObject>> New(uint64_t size);
  MemoryTicket Publish(const std::shared_ptr<MemoryObject>& memory, FdDirection direction);
  void PopulateNext(Populating job);
  void QueuePopulating(Populating job);

  const PinBook pins_;
};

}  // namespace rnicd::core
