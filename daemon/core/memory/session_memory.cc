#include "daemon/core/memory/session_memory.h"

#include <utility>

#include "base/status.h"
#include "daemon/core/request/lease.h"
#include "daemon/core/tenant/caller.h"

namespace rnicd::core {

absl::Status SessionMemory::CheckNew(uint64_t size) const {
  RNICD_RETURN_IF_ERROR(requests_.CheckNotDraining());
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
  return absl::OkStatus();
}

// What the file occupies, which is more than its size where that is not whole pages of the kernel's.
absl::StatusOr<MemoryCharges> SessionMemory::ChargeFor(uint64_t size) {
  RNICD_ASSIGN_OR_RETURN(auto charges,
                         Charge::TakeAll(ledger_, {{Resource::kMemoryObjects, 1},
                                                   {Resource::kMemoryBytes, OccupiedBytes(node_.os, size)}}));
  return MemoryCharges{.object = std::move(charges[0]), .bytes = std::move(charges[1])};
}

absl::StatusOr<std::shared_ptr<MemoryObject>> SessionMemory::New(uint64_t size, const std::optional<PageWish>& wish,
                                                                 std::optional<FreshMemory>& ready) {
  node_.lingering.Sweep();
  MemoryCharges charges;
  const auto charge = [&]() -> absl::Status {
    RNICD_ASSIGN_OR_RETURN(charges, ChargeFor(size));
    return absl::OkStatus();
  };
  if (node_.pool == nullptr) {
    RNICD_RETURN_IF_ERROR(charge());
  } else {
    RNICD_ASSIGN_OR_RETURN(MemoryPool::Given given, node_.pool->Give(size, wish, charge));
    ready = std::move(given.ready);
    if (!given.freed.empty()) {
      // Freed on a thread where it delays no request.
      node_.populators.Post(
          [freed = std::make_shared<std::vector<FreshMemory>>(std::move(given.freed))] { freed->clear(); });
    }
  }
  return std::make_shared<MemoryObject>(node_.os, node_.lingering, size, pins_, std::move(charges));
}

MemoryTicket SessionMemory::Publish(const std::shared_ptr<MemoryObject>& memory, FdDirection direction) {
  const MemoryObjectId id = table_.Insert(memory);
  const FdTicket ticket = node_.tickets.Issue(
      {.session = lease_.weak_from_this(), .object = id, .direction = direction, .process = lease_.owner().process});
  memory->Hold(OwnedTicket(node_.tickets, ticket));
  return MemoryTicket{.memory = id, .ticket = ticket};
}

absl::StatusOr<MemoryTicket> SessionMemory::Import(uint64_t size) {
  RNICD_RETURN_IF_ERROR(CheckNew(size));
  std::optional<FreshMemory> none;
  RNICD_ASSIGN_OR_RETURN(const std::shared_ptr<MemoryObject> memory, New(size, std::nullopt, none));
  return Publish(memory, FdDirection::kToDaemon);
}

absl::StatusOr<std::shared_ptr<MemoryObject>> SessionMemory::Find(MemoryObjectId id) {
  return FindIn(table_, id, "memory_id");
}

MaybePending<> SessionMemory::Seal(const std::shared_ptr<MemoryObject>& memory, const Done<>& done) {
  RNICD_ASSIGN_OR_RETURN(FileSealing begun, memory->BeginSeal());
  const auto held = std::make_shared<SessionGuard>(lease_.Hold());
  const auto sealing = std::make_shared<FileSealing>(std::move(begun));
  PopulatingJob job = {.held = held, .memory = memory};
  job.report = [done](const std::shared_ptr<MemoryObject>& /*sealed*/, const absl::Status& status) { done(status); };
  const uint64_t key = InsertSeal({.job = std::move(job), .sealing = sealing});
  const BlockingExecutor::Started started = node_.blocking.Start(
      OwnerOf(lease_.owner()), [sealing, &os = node_.os] { sealing->Run(os); },
      [this, weak = lease_.weak_from_this(), key] {
        if (const std::shared_ptr<Lease> lease = weak.lock(); lease != nullptr) {
          FinishSeal(key);
        }
      });
  if (started != BlockingExecutor::Started::kQueued) {
    const std::optional<PendingSeal> seal = TakeSeal(key);
    if (!seal.has_value()) {
      return MaybePending<>::Pending();
    }
    if (started == BlockingExecutor::Started::kRan) {
      return PopulateSealed(*seal);
    }
    memory->AbandonSeal();
    return MakeError(ErrorReason::FD_BLOCKED);
  }
  // The end of the session may have begun meanwhile, and cancelled the seals before this one was listed.
  if (lease_.ending()) {
    node_.reapers.PostFor(lease_.tenant().number(), [this, held] { CancelSeals(); });
  }
  return MaybePending<>::Pending();
}

uint64_t SessionMemory::InsertSeal(PendingSeal seal) {
  MutexLock lock(seals_mutex_);
  seals_.emplace(next_seal_, std::move(seal));
  return next_seal_++;
}

std::optional<SessionMemory::PendingSeal> SessionMemory::TakeSeal(uint64_t key) {
  MutexLock lock(seals_mutex_);
  const auto found = seals_.find(key);
  if (found == seals_.end()) {
    return std::nullopt;
  }
  PendingSeal seal = std::move(found->second);
  seals_.erase(found);
  return seal;
}

// A file without holes is quickly mapped, and one that was allocated here is mapped already. Holes cost the time that
// their pages take, whatever the size.
MaybePending<> SessionMemory::PopulateSealed(const PendingSeal& seal) {
  MemoryObject& memory = *seal.job.memory;
  RNICD_ASSIGN_OR_RETURN(const uint64_t holes, memory.FinishSeal(*seal.sealing));
  lease_.CountBytes(holes, kPopulatedBytesPerRequest);
  Populating& work = *memory.populating();
  if (work.done() == work.size() || (holes == 0 && !requests_.IsSlow(memory.size()))) {
    while (work.RunPiece() == Populating::Next::kGoOn) {
    }
    return memory.EndPopulating();
  }
  QueuePopulating(seal.job);
  return MaybePending<>::Pending();
}

void SessionMemory::FinishSeal(uint64_t key) {
  const std::optional<PendingSeal> seal = TakeSeal(key);
  if (!seal.has_value()) {
    return;
  }
  const MaybePending<> outcome = PopulateSealed(*seal);
  if (!outcome.pending()) {
    seal->job.report(seal->job.memory, outcome.outcome());
  }
}

void SessionMemory::CancelSeals() {
  std::map<uint64_t, PendingSeal> cancelled;
  {
    MutexLock lock(seals_mutex_);
    cancelled.swap(seals_);
  }
  for (const auto& [key, seal] : cancelled) {
    seal.job.memory->AbandonSeal();
    seal.job.report(seal.job.memory, MakeError(ErrorReason::SESSION_ENDING));
  }
}

MaybePending<> SessionMemory::Release(MemoryObjectId id, const Done<>& done) {
  RNICD_ASSIGN_OR_RETURN(const std::shared_ptr<MemoryObject> memory, Find(id));
  const auto release = [this, memory, id]() -> absl::Status {
    RNICD_RETURN_IF_ERROR(memory->Release());
    table_.Remove(id);
    return absl::OkStatus();
  };
  if (!requests_.IsSlow(memory->size())) {
    RNICD_RETURN_IF_ERROR(release());
    return absl::OkStatus();
  }
  requests_.RunOnWorker([release, done](const absl::Status& start) { done(start.ok() ? release() : start); });
  return MaybePending<>::Pending();
}

void SessionMemory::CountItems(uint64_t items) { lease_.CountBytes(items, 1); }

void SessionMemory::Drop(MemoryObjectId id) {
  const std::shared_ptr<MemoryObject> memory = table_.Remove(id);
  if (memory != nullptr) {
    (void)memory->Release();
  }
}

}  // namespace rnicd::core
