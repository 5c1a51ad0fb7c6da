#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "absl/status/statusor.h"
#include "base/strong_id.h"
#include "daemon/core/memory/mdl_chain.h"
#include "daemon/core/memory/session_memory.h"
#include "daemon/core/region/logical_mapping.h"
#include "daemon/core/region/session_adapters.h"
#include "daemon/core/request/session_objects.h"

namespace rnicd::core {

struct BuildLamArguments {
  AdapterId adapter;
  std::span<const MdlEntry> chain;
  uint64_t length = 0;
  // Size in bytes of the caller's NDK_LOGICAL_ADDRESS_MAPPING; empty means large enough.
  std::optional<uint64_t> lam_size;
};

struct BuiltLam {
  LogicalMappingId id;
  // Logical address of the first page; the others follow.
  LogicalAddress first;
  uint64_t pages = 0;
  uint32_t fbo = 0;
};

// The logical address mappings of a session, and the space of their addresses.
class SessionMappings final : public SessionObjects<LogicalMappingId, LogicalMapping> {
 public:
  SessionMappings(SessionRequests& requests, const SessionAdapters& adapters, const SessionMemory& memory)
      : SessionObjects(requests),
        addresses_(node_.random.Next()),
        adapters_(adapters.table()),
        memory_(memory.table()) {}

  absl::StatusOr<BuiltLam> Build(const BuildLamArguments& arguments);
  absl::Status Release(LogicalMappingId id);

  // For work requests, which name addresses.
  const LogicalAddressSpace& addresses() const { return addresses_; }

 private:
  friend class Session;
  template <typename Wanted>
  void ReleaseIf(const Wanted& wanted) {
    for (const auto& [id, mapping] : table_.TakeIf(wanted)) {
      addresses_.Remove(*mapping);
    }
  }

  LogicalAddressSpace addresses_;
  const SessionAdapters::Table& adapters_;
  const SessionMemory::Table& memory_;
};

}  // namespace rnicd::core
