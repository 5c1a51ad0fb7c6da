#include <algorithm>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/units.h"
#include "daemon/core/memory/session_memory.h"
#include "daemon/core/request/lease.h"

namespace rnicd::core {
namespace {

// With less for it to do, a further thread gains nothing.
constexpr uint64_t kWorthAThread = uint64_t{16} << 20;

}  // namespace

MaybePending<MemoryTicket> SessionMemory::Allocate(const AllocateArguments& arguments, Done<MemoryTicket> done) {
  if (arguments.size % arguments.page_bytes.value_or(kNdkPageBytes) != 0) {
    return MakeError(ErrorReason::MEMORY_SIZE_UNALIGNED, "size");
  }
  const auto allocation = std::make_shared<Allocation>(Allocation{.arguments = arguments});
  RNICD_RETURN_IF_ERROR(Admit(*allocation));
  // A file of the pool that need not be cut is ready at once.
  if (allocation->pooled.has_value() && allocation->pooled->size() == arguments.size) {
    RNICD_RETURN_IF_ERROR(BeginAllocate(*allocation));
    (void)allocation->memory->populating()->RunPiece();
    RNICD_RETURN_IF_ERROR(allocation->memory->EndPopulating());
    return PublishAllocated(*allocation);
  }
  PopulatingJob job = {.held = std::make_shared<SessionGuard>(lease_.Hold()), .memory = allocation->memory};
  if (arguments.progress_context != 0) {
    job.progress = std::make_shared<ProgressReport>(lease_.events(), arguments.progress_context, arguments.size);
  }
  job.report = [this, allocation, done = std::move(done)](const std::shared_ptr<MemoryObject>& memory,
                                                          const absl::Status& status) {
    if (status.ok()) {
      done(PublishAllocated(*allocation));
      return;
    }
    // Refunded before the response, so that the caller's next request does not exceed its quota because of this one.
    (void)memory->Release();
    done(status);
  };
  QueueAllocating(allocation, job);
  return MaybePending<MemoryTicket>::Pending();
}

absl::Status SessionMemory::Admit(Allocation& allocation) {
  const AllocateArguments& arguments = allocation.arguments;
  RNICD_RETURN_IF_ERROR(CheckNew(arguments.size));
  const PageWish wish = {.page_bytes = arguments.page_bytes, .numa_node = arguments.numa_node};
  RNICD_ASSIGN_OR_RETURN(allocation.memory, New(arguments.size, wish, allocation.pooled));
  allocation.from_pool = allocation.pooled.has_value();
  lease_.CountBytes(arguments.size, kPopulatedBytesPerRequest);
  return absl::OkStatus();
}

MemoryTicket SessionMemory::PublishAllocated(const Allocation& allocation) {
  MemoryTicket ticket = Publish(allocation.memory, FdDirection::kToClient);
  ticket.page_bytes = allocation.memory->page_bytes();
  ticket.transparent_huge_pages = allocation.transparent_huge_pages;
  ticket.from_pool = allocation.from_pool;
  return ticket;
}

// The pool's file, cut or made longer, or a new one.
absl::StatusOr<FreshMemory> SessionMemory::TakeFresh(Allocation& allocation) {
  const AllocateArguments& arguments = allocation.arguments;
  if (allocation.pooled.has_value()) {
    FreshMemory pooled = std::move(*std::exchange(allocation.pooled, std::nullopt));
    if (pooled.FitTo(arguments.size).ok()) {
      return pooled;
    }
    allocation.from_pool = false;
  }
  const PageChoice pages = {.page_bytes = arguments.page_bytes.value_or(kNdkPageBytes),
                            .numa_node = arguments.numa_node};
  RNICD_ASSIGN_OR_RETURN(FreshMemory made, FreshMemory::Create(node_.os, arguments.size, pages));
  allocation.transparent_huge_pages = !arguments.page_bytes.has_value() && made.AdviseHugePages();
  return made;
}

absl::Status SessionMemory::BeginAllocate(Allocation& allocation) {
  RNICD_ASSIGN_OR_RETURN(FreshMemory fresh, TakeFresh(allocation));
  return allocation.memory->BeginAllocate(std::move(fresh), allocation.transparent_huge_pages);
}

void SessionMemory::QueueAllocating(const std::shared_ptr<Allocation>& allocation, const PopulatingJob& job) {
  requests_.RunHeld(node_.populators, job.held, [this, allocation, job](const absl::Status& start) {
    const absl::Status begun = start.ok() ? BeginAllocate(*allocation) : start;
    if (begun.ok()) {
      Populate(job);
    } else {
      job.report(job.memory, begun);
    }
  });
}

// On several threads where that pays. Each takes a piece, and then goes to the end of the owner's line, so that a large
// object does not delay another owner's small one.
void SessionMemory::Populate(const PopulatingJob& job) {
  const std::shared_ptr<Populating> work = job.memory->populating();
  const uint64_t left = work->size() - work->done();
  const uint64_t threads = std::clamp<uint64_t>(left / kWorthAThread, 1, node_.populating_threads);
  for (uint64_t others = 1; others < threads; ++others) {
    QueuePiece(job);
  }
  EndPiece(job, work->RunPiece());
}

void SessionMemory::QueuePopulating(const PopulatingJob& job) {
  requests_.RunHeld(node_.populators, job.held, [this, job](const absl::Status& start) {
    if (start.ok()) {
      Populate(job);
    } else {
      EndPiece(job, job.memory->populating()->Cancel(start));
    }
  });
}

void SessionMemory::QueuePiece(const PopulatingJob& job) {
  requests_.RunHeld(node_.populators, job.held,
                    [this, job, work = job.memory->populating()](const absl::Status& start) {
                      EndPiece(job, start.ok() ? work->RunPiece() : work->Cancel(start));
                    });
}

void SessionMemory::EndPiece(const PopulatingJob& job, Populating::Next next) {
  switch (next) {
    case Populating::Next::kLeave:
      return;
    case Populating::Next::kEnd:
      if (job.progress != nullptr) {
        job.progress->End();
      }
      job.report(job.memory, job.memory->EndPopulating());
      return;
    case Populating::Next::kGoOn:
      if (job.progress != nullptr) {
        job.progress->Note(job.memory->populating()->done());
      }
      QueuePiece(job);
  }
}

}  // namespace rnicd::core
