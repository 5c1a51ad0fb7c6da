// Memory objects of a session: the calls that make, seal and release them.

#include "base/status.h"
#include "daemon/core/request_cost.h"
#include "daemon/core/session.h"

namespace rnicd::core {

absl::StatusOr<std::shared_ptr<MemoryObject>> Session::NewMemory(uint64_t size) {
  RNICD_RETURN_IF_ERROR(CheckNotDraining());
  if (size == 0) {
    return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, "size");
  }
  if (size % kNdkPageBytes != 0) {
    return MakeError(ErrorReason::MEMORY_SIZE_UNALIGNED, "size");
  }
  // The kernel counts file sizes as signed.
  if (size > static_cast<uint64_t>(INT64_MAX)) {
    return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, "size");
  }
  node_.lingering.Sweep();
  MemoryCharges charges;
  RNICD_ASSIGN_OR_RETURN(charges.object, Charge::Take(ledger_, Resource::kMemoryObjects, 1));
  RNICD_ASSIGN_OR_RETURN(charges.bytes, Charge::Take(ledger_, Resource::kMemoryBytes, size));
  return std::make_shared<MemoryObject>(node_.os, node_.lingering, size, pins_, std::move(charges));
}

MemoryTicket Session::PublishMemory(const std::shared_ptr<MemoryObject>& memory, FdDirection direction) {
  const MemoryObjectId id = memories_.Insert(memory);
  const FdTicket ticket = node_.tickets.Issue(
      {.session = weak_from_this(), .memory = id, .direction = direction, .process = owner_.process});
  memory->Hold(OwnedTicket(node_.tickets, ticket));
  return MemoryTicket{.memory = id, .ticket = ticket};
}

absl::Status Session::AllocateMemory(const AllocateArguments& arguments, AllocateDone done) {
  if (arguments.size % arguments.page_bytes != 0) {
    return MakeError(ErrorReason::MEMORY_SIZE_UNALIGNED, "size");
  }
  RNICD_ASSIGN_OR_RETURN(Guard guard, Begin());
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<MemoryObject> memory, NewMemory(arguments.size));
  CountBytes(arguments.size, kPopulatedBytesPerRequest);
  Populating job = {.held = std::make_shared<Guard>(std::move(guard)), .memory = std::move(memory)};
  job.report = [this, done = std::move(done)](std::shared_ptr<MemoryObject> allocated, const absl::Status& status) {
    if (status.ok()) {
      done(PublishMemory(allocated, FdDirection::kToClient));
      return;
    }
    // Refunded before the response, so that the caller's next request does not exceed its quota because of this one.
    allocated.reset();
    done(status);
  };
  const std::shared_ptr<Guard> held = job.held;
  RunHeld(node_.populators, held, [this, arguments, job = std::move(job)](const absl::Status& start) mutable {
    const absl::Status begun =
        start.ok() ? job.memory->BeginAllocate(arguments.page_bytes, arguments.numa_node) : start;
    if (begun.ok()) {
      PopulateNext(std::move(job));
    } else {
      job.report(std::move(job.memory), begun);
    }
  });
  return absl::OkStatus();
}

// A piece at a time, and then to the end of the owner's line, so that a large object delays nobody else's small one.
void Session::PopulateNext(Populating job) {
  const absl::StatusOr<bool> complete = job.memory->PopulateNext();
  if (!complete.ok() || *complete) {
    job.report(std::move(job.memory), complete.status());
    return;
  }
  QueuePopulating(std::move(job));
}

void Session::QueuePopulating(Populating job) {
  const std::shared_ptr<Guard> held = job.held;
  RunHeld(node_.populators, held, [this, job = std::move(job)](const absl::Status& start) mutable {
    if (start.ok()) {
      PopulateNext(std::move(job));
      return;
    }
    job.memory->AbandonWork();
    job.report(std::move(job.memory), start);
  });
}

absl::StatusOr<MemoryTicket> Session::ImportMemory(uint64_t size) {
  RNICD_ASSIGN_OR_RETURN(const std::shared_ptr<MemoryObject> memory, NewMemory(size));
  return PublishMemory(memory, FdDirection::kToDaemon);
}

absl::StatusOr<std::shared_ptr<MemoryObject>> Session::FindMemory(MemoryObjectId id) {
  return FindIn(memories_, id, "memory_id");
}

// A file without holes is quickly mapped. Holes cost the time that their pages take, whatever the size.
absl::StatusOr<Progress> Session::SealMemory(const std::shared_ptr<MemoryObject>& memory, const Done& done) {
  RNICD_ASSIGN_OR_RETURN(Guard guard, Begin());
  RNICD_ASSIGN_OR_RETURN(const uint64_t holes, memory->BeginSeal());
  CountBytes(holes, kPopulatedBytesPerRequest);
  Populating job = {.held = std::make_shared<Guard>(std::move(guard)), .memory = memory};
  job.report = [done](const std::shared_ptr<MemoryObject>& /*sealed*/, const absl::Status& status) { done(status); };
  if (holes == 0 && !IsSlow(memory->size())) {
    RNICD_ASSIGN_OR_RETURN(const bool complete, memory->PopulateNext());
    if (complete) {
      return Progress::kDone;
    }
  }
  QueuePopulating(std::move(job));
  return Progress::kPending;
}

absl::StatusOr<Progress> Session::ReleaseMemory(MemoryObjectId id, const Done& done) {
  RNICD_ASSIGN_OR_RETURN(const std::shared_ptr<MemoryObject> memory, FindMemory(id));
  const auto release = [this, memory, id]() -> absl::Status {
    RNICD_RETURN_IF_ERROR(memory->Release());
    memories_.Remove(id);
    return absl::OkStatus();
  };
  if (!IsSlow(memory->size())) {
    RNICD_RETURN_IF_ERROR(release());
    return Progress::kDone;
  }
  RNICD_ASSIGN_OR_RETURN(Guard guard, Begin());
  RunOnWorker(std::move(guard), [release, done](const absl::Status& start) { done(start.ok() ? release() : start); });
  return Progress::kPending;
}

void Session::DropMemory(MemoryObjectId id) {
  const std::shared_ptr<MemoryObject> memory = memories_.Remove(id);
  if (memory != nullptr) {
    (void)memory->Release();
  }
}

}  // namespace rnicd::core
