#include "client/c/handles.h"
#include "client/c/sized.h"

using rnicd::c::CheckGiven;
using rnicd::c::CloseHandle;
using rnicd::c::Give;
using rnicd::c::Run;

int rnicd_create_fast_mr(rnicd_session* session, uint32_t max_pages, uint32_t flags, rnicd_fast_mr** mr) {
  return Run([&]() -> absl::Status {
    RNICD_RETURN_IF_ERROR(CheckGiven("session", session, "mr", mr));
    RNICD_RETURN_IF_ERROR(rnicd::c::CheckFlags(flags, RNICD_FAST_MR_REMOTE_ACCESS, "flags"));
    return Give(rnicd::FastRegion::Create(session->object, {.max_pages = max_pages, .remote_access = flags != 0}), mr);
  });
}

int rnicd_query_fast_mr(const rnicd_fast_mr* mr, rnicd_fast_mr_info* info) {
  return Run([&]() -> absl::Status {
    RNICD_RETURN_IF_ERROR(CheckGiven("mr", mr));
    return rnicd::c::Fill({.size = sizeof(*info),
                           .id = mr->object.id().value,
                           .local_token = mr->object.local_token().value,
                           .reserved = 0},
                          info, "info");
  });
}

int rnicd_fast_mr_token(rnicd_fast_mr* mr, uint32_t* token) {
  return Run([&]() -> absl::Status {
    RNICD_RETURN_IF_ERROR(CheckGiven("mr", mr, "token", token));
    RNICD_ASSIGN_OR_RETURN(const rnicd::RemoteToken own, mr->object.GetRemoteToken());
    *token = own.value;
    return absl::OkStatus();
  });
}

int rnicd_close_fast_mr(rnicd_fast_mr* mr) {
  return CloseHandle(mr, [](rnicd::FastRegion& region) { return region.Close(); });
}

int rnicd_create_mapping(rnicd_memory* memory, uint64_t offset, uint64_t length, rnicd_mapping** mapping) {
  return Run([&]() -> absl::Status {
    RNICD_RETURN_IF_ERROR(CheckGiven("memory", memory, "mapping", mapping));
    RNICD_ASSIGN_OR_RETURN(const auto part, rnicd::c::PartOf(*memory, offset, length));
    return Give(rnicd::LogicalMapping::Build(memory->object, part), mapping);
  });
}

int rnicd_create_mapping_mdl(rnicd_session* session, const rnicd_mdl* chain, uint32_t count, uint64_t length,
                             rnicd_mapping** mapping) {
  return Run([&]() -> absl::Status {
    RNICD_RETURN_IF_ERROR(CheckGiven("session", session, "chain", chain, "mapping", mapping));
    RNICD_ASSIGN_OR_RETURN(const std::vector<rnicd::MdlEntry> entries, rnicd::c::EntriesOf(chain, count));
    return Give(rnicd::LogicalMapping::BuildChain(session->object, entries, length), mapping);
  });
}

int rnicd_query_mapping(const rnicd_mapping* mapping, rnicd_pages* pages) {
  static_assert(sizeof(rnicd::LogicalAddress) == sizeof(uint64_t));
  return Run([&]() -> absl::Status {
    RNICD_RETURN_IF_ERROR(CheckGiven("mapping", mapping));
    const rnicd::FastRegistration& all = mapping->registration;
    return rnicd::c::Fill({.size = sizeof(*pages),
                           .pages = &all.pages.data()->value,
                           .page_count = static_cast<uint32_t>(all.pages.size()),
                           .fbo = all.fbo,
                           .length = all.length,
                           .address = all.base_address.value},
                          pages, "pages");
  });
}

int rnicd_close_mapping(rnicd_mapping* mapping) {
  return CloseHandle(mapping, [](rnicd::LogicalMapping& object) { return object.Release(); });
}

int rnicd_create_mw(rnicd_session* session, rnicd_mw** mw) {
  return Run([&]() -> absl::Status {
    RNICD_RETURN_IF_ERROR(CheckGiven("session", session, "mw", mw));
    return Give(rnicd::MemoryWindow::Create(session->object), mw);
  });
}

int rnicd_mw_token(rnicd_mw* mw, uint32_t* token) {
  return Run([&]() -> absl::Status {
    RNICD_RETURN_IF_ERROR(CheckGiven("mw", mw, "token", token));
    RNICD_ASSIGN_OR_RETURN(const rnicd::RemoteToken own, mw->object.GetRemoteToken());
    *token = own.value;
    return absl::OkStatus();
  });
}

int rnicd_close_mw(rnicd_mw* mw) {
  return CloseHandle(mw, [](rnicd::MemoryWindow& window) { return window.Close(); });
}
