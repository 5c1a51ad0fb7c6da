#include <algorithm>
#include <span>

#include "client/c/handles.h"
#include "client/c/sized.h"

using rnicd::c::CheckGiven;
using rnicd::c::CloseHandle;
using rnicd::c::EntriesOf;
using rnicd::c::Fill;
using rnicd::c::Give;
using rnicd::c::GiveEach;
using rnicd::c::PartOf;
using rnicd::c::Run;

namespace rnicd::c {
namespace {

std::vector<RegionRange> RangesOf(const rnicd_range* ranges, uint32_t count) {
  std::vector<RegionRange> own;
  own.reserve(count);
  for (const rnicd_range& range : std::span(ranges, count)) {
    own.push_back({.offset = range.offset, .length = range.length, .flags = range.flags});
  }
  return own;
}

}  // namespace
}  // namespace rnicd::c

int rnicd_register_mr(rnicd_memory* memory, uint64_t offset, uint64_t length, uint32_t flags, rnicd_mr** mr) {
  return Run([&]() -> absl::Status {
    RNICD_RETURN_IF_ERROR(CheckGiven("memory", memory, "mr", mr));
    RNICD_ASSIGN_OR_RETURN(const auto part, PartOf(*memory, offset, length));
    return Give(rnicd::MemoryRegion::Register(memory->object, part, flags), mr);
  });
}

int rnicd_register_mdl(rnicd_session* session, const rnicd_mdl* chain, uint32_t count, uint64_t length, uint32_t flags,
                       rnicd_mr** mr) {
  return Run([&]() -> absl::Status {
    RNICD_RETURN_IF_ERROR(CheckGiven("session", session, "chain", chain, "mr", mr));
    RNICD_ASSIGN_OR_RETURN(const std::vector<rnicd::MdlEntry> entries, EntriesOf(chain, count));
    return Give(rnicd::MemoryRegion::RegisterChain(session->object, entries, length, flags), mr);
  });
}

int rnicd_register_batch(rnicd_memory* memory, const rnicd_range* ranges, uint32_t count, rnicd_mr** mrs) {
  return Run([&]() -> absl::Status {
    RNICD_RETURN_IF_ERROR(CheckGiven("memory", memory, "ranges", ranges, "mrs", mrs));
    std::fill_n(mrs, count, nullptr);
    RNICD_ASSIGN_OR_RETURN(auto regions,
                           rnicd::MemoryRegion::Provision(memory->object, rnicd::c::RangesOf(ranges, count)));
    return GiveEach(std::move(regions), mrs, "ranges");
  });
}

int rnicd_provision(rnicd_session* session, const rnicd_memory_options* options, const rnicd_range* ranges,
                    uint32_t count, rnicd_memory** memory, rnicd_mr** mrs) {
  return Run([&]() -> absl::Status {
    RNICD_RETURN_IF_ERROR(CheckGiven("session", session, "options", options, "ranges", ranges));
    RNICD_RETURN_IF_ERROR(CheckGiven("memory", memory, "mrs", mrs));
    *memory = nullptr;
    std::fill_n(mrs, count, nullptr);
    RNICD_ASSIGN_OR_RETURN(const rnicd::AllocateOptions own, rnicd::c::MemoryOptionsOf(options));
    RNICD_ASSIGN_OR_RETURN(rnicd::Provisioned made,
                           rnicd::MemoryRegion::Provision(session->object, own, rnicd::c::RangesOf(ranges, count)));
    auto handle = std::make_unique<rnicd_memory>(std::move(made.memory));
    const absl::Status outcome = GiveEach(std::move(made.regions), mrs, "ranges");
    *memory = handle.release();
    return outcome;
  });
}

int rnicd_register_mr_async(rnicd_memory* memory, uint64_t offset, uint64_t length, uint32_t flags,
                            void (*done)(void* context, rnicd_mr* mr, const rnicd_error* error), void* context) {
  return Run([&]() -> absl::Status {
    RNICD_RETURN_IF_ERROR(CheckGiven("memory", memory, "done", reinterpret_cast<const void*>(done)));
    RNICD_ASSIGN_OR_RETURN(const auto part, PartOf(*memory, offset, length));
    // Made first, so that the callback needs no memory.
    const auto mr = std::make_shared<std::unique_ptr<rnicd_mr>>(std::make_unique<rnicd_mr>(std::nullopt));
    rnicd::MemoryRegion::RegisterAsync(memory->object, part, flags,
                                       [mr, done, context](absl::StatusOr<rnicd::MemoryRegion> region) {
                                         if (!region.ok()) {
                                           const rnicd_error error = rnicd::c::Describe(region.status());
                                           done(context, nullptr, &error);
                                           return;
                                         }
                                         (*mr)->object = *std::move(region);
                                         done(context, mr->release(), nullptr);
                                       });
    return absl::OkStatus();
  });
}

int rnicd_query_mr(const rnicd_mr* mr, rnicd_mr_info* info) {
  return Run([&]() -> absl::Status {
    RNICD_RETURN_IF_ERROR(CheckGiven("mr", mr));
    const rnicd::MemoryRegion& region = *mr->object;
    return Fill({.size = sizeof(*info),
                 .address = region.base_address().value,
                 .length = region.length(),
                 .local_token = region.local_token().value,
                 .remote_token = region.remote_token().value,
                 .id = region.id().value},
                info, "info");
  });
}

int rnicd_deregister_mr(rnicd_mr* mr) {
  return Run([&]() -> absl::Status {
    RNICD_RETURN_IF_ERROR(CheckGiven("mr", mr));
    return mr->object->Deregister();
  });
}

int rnicd_close_mr(rnicd_mr* mr) {
  return CloseHandle(mr, [](std::optional<rnicd::MemoryRegion>& region) { return region->Close(); });
}

int rnicd_close_mrs(rnicd_mr** mrs, uint32_t count) {
  return Run([&]() -> absl::Status {
    RNICD_RETURN_IF_ERROR(CheckGiven("mrs", mrs));
    std::vector<rnicd::MemoryRegion> regions;
    regions.reserve(count);
    absl::Status outcome;
    for (rnicd_mr*& mr : std::span(mrs, count)) {
      const std::unique_ptr<rnicd_mr> freed(std::exchange(mr, nullptr));
      if (freed == nullptr) {
        continue;
      }
      outcome.Update(rnicd::c::CheckProcess(*freed));
      if (outcome.ok()) {
        regions.push_back(*std::move(freed->object));
      }
    }
    outcome.Update(rnicd::MemoryRegion::CloseBatch(std::move(regions)));
    return outcome;
  });
}

int rnicd_close_mr_async(rnicd_mr* mr, void (*done)(void* context, const rnicd_error* error), void* context) {
  return Run([&]() -> absl::Status {
    RNICD_RETURN_IF_ERROR(CheckGiven("mr", static_cast<const void*>(mr), "done", reinterpret_cast<const void*>(done)));
    const std::unique_ptr<rnicd_mr> freed(mr);
    RNICD_RETURN_IF_ERROR(rnicd::c::CheckProcess(*mr));
    rnicd::MemoryRegion::CloseAsync(*std::move(mr->object), [done, context](const absl::Status& outcome) {
      const rnicd_error error = rnicd::c::Describe(outcome);
      done(context, outcome.ok() ? nullptr : &error);
    });
    return absl::OkStatus();
  });
}
