#include "daemon/core/region/session_mappings.h"

#include <memory>
#include <utility>

#include "base/status.h"

namespace rnicd::core {
namespace {

// NDK_LOGICAL_ADDRESS_MAPPING: a pointer, a count, padding, then the array.
constexpr uint64_t kLamHeaderBytes = 16;
constexpr uint64_t kLamEntryBytes = 8;

}  // namespace

absl::StatusOr<BuiltLam> SessionMappings::Build(const BuildLamArguments& arguments) {
  RNICD_RETURN_IF_ERROR(requests_.CheckNotDraining());
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<Adapter> adapter, FindIn(adapters_, arguments.adapter, "adapter_id"));
  const MemoryLookup find_memory = [this](MemoryObjectId id) { return memory_.Find(id); };
  RNICD_ASSIGN_OR_RETURN(MappedRange range, ResolveMdlChain(arguments.chain, arguments.length, find_memory));
  if (range.dmabuf.has_value()) {
    return MakeErrorWithDetail(
        ErrorInfo{.reason = ErrorReason::DEVICE_NOT_CAPABLE, .field = "mdl_chain[0].memory_id"},
        "a dma-buf has no pages in the daemon, so it has no logical addresses; RegisterMr takes it");
  }
  const uint64_t needed = kLamHeaderBytes + kLamEntryBytes * range.pages;
  if (arguments.lam_size.has_value() && *arguments.lam_size < needed) {
    return MakeError(ErrorInfo{.reason = ErrorReason::BUFFER_TOO_SMALL,
                               .field = "lam_size",
                               .limit = *arguments.lam_size,
                               .requested = needed});
  }
  BuiltLam built{.pages = range.pages, .fbo = static_cast<uint32_t>(range.base.value % kNdkPageBytes)};
  RNICD_ASSIGN_OR_RETURN(Kept<Adapter> kept, Adapter::Keep(std::move(adapter)));
  RNICD_ASSIGN_OR_RETURN(TakenPages taken, TakePages(std::move(range), kept->device(), ledger_));
  const auto mapping =
      std::make_shared<LogicalMapping>(std::move(kept), std::move(taken.mapping), std::move(taken.pages), built.fbo);
  addresses_.Insert(mapping);
  built.first = mapping->base();
  built.id = table_.Insert(mapping);
  return built;
}

absl::Status SessionMappings::Release(LogicalMappingId id) {
  const std::shared_ptr<LogicalMapping> mapping = table_.Remove(id);
  if (mapping == nullptr) {
    return MakeError(ErrorReason::OBJECT_NOT_FOUND, "lam_id");
  }
  addresses_.Remove(*mapping);
  return absl::OkStatus();
}

}  // namespace rnicd::core
