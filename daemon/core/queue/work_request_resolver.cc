#include "daemon/core/queue/work_request_resolver.h"

#include <span>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/utility/utility.h"
#include "base/checked_range.h"
#include "base/ndk/op_flags.h"
#include "base/status.h"
#include "daemon/core/tenant/heap_cost.h"

namespace rnicd::core {
namespace {

std::string SgeField(std::string_view operation, size_t index, std::string_view member) {
  return std::string(operation) + ".sges[" + std::to_string(index) + "]." + std::string(member);
}

// The same failure with `field` as its field.
absl::Status At(const absl::Status& status, std::string_view field) {
  ErrorInfo info = ErrorInfoOf(status);
  info.field = field;
  return MakeError(info);
}

// Resources that a request with logical addresses keeps until it is complete.
struct PayloadBacking {
  absl::InlinedVector<std::shared_ptr<const void>, provider::kInlineEntries> pages;
  Charge list;
  Charge heap;
};

// Resources that a fast registration keeps from posting until it ends.
struct FastBacking {
  PageRuns runs;
  std::shared_ptr<const void> pages;
  Charge list;
  Charge heap;
};

// Another call may close the window after it was found.
absl::StatusOr<std::shared_ptr<provider::DeviceMemoryWindow>> DeviceOf(const MemoryWindow& window,
                                                                       std::string_view field) {
  std::shared_ptr<provider::DeviceMemoryWindow> device = window.device();
  if (device == nullptr) {
    return MakeError(ErrorReason::OBJECT_CLOSING, field);
  }
  return device;
}

// False when all bytes together are more than `bytes_max`; also when their sum would overflow.
bool FitInOneTransfer(const Sges& sges, uint32_t bytes_max) {
  uint64_t left = bytes_max;
  for (const Sge& sge : sges) {
    if (sge.length > left) {
      return false;
    }
    left -= sge.length;
  }
  return true;
}

// Checks of one FastRegister that need only its numbers.
absl::Status CheckFastRegister(const WorkRequest::FastRegister& operation, uint32_t max_pages) {
  if (operation.pages.empty()) {
    return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, "fast_register.adapter_page_array");
  }
  if (operation.pages.size() > max_pages) {
    return MakeError(ErrorReason::PAGE_COUNT_ABOVE_REGION, "fast_register.adapter_page_array");
  }
  if (operation.fbo >= kNdkPageBytes) {
    return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, "fast_register.fbo");
  }
  if (operation.length == 0) {
    return MakeError(ErrorReason::LENGTH_ZERO, "fast_register.length");
  }
  if (operation.length > operation.pages.size() * kNdkPageBytes - operation.fbo) {
    return MakeError(ErrorReason::LENGTH_ABOVE_PAGES, "fast_register.length");
  }
  if (operation.base_address.value % kNdkPageBytes != operation.fbo) {
    return MakeError(ErrorReason::BASE_NOT_CONGRUENT, "fast_register.base_virtual_address");
  }
  if (!CheckedRange::Make(operation.base_address.value, operation.length).has_value()) {
    return MakeError(ErrorReason::ADDRESS_RANGE_OVERFLOW, "fast_register.base_virtual_address");
  }
  return absl::OkStatus();
}

}  // namespace

template <typename Id, typename T>
absl::StatusOr<std::shared_ptr<T>> WorkRequestResolver::FindHere(const ObjectTable<Id, T>& table, Id id,
                                                                 std::string_view field) const {
  std::shared_ptr<T> found = table.Find(id);
  if (found == nullptr) {
    return MakeError(ErrorReason::OBJECT_NOT_FOUND, field);
  }
  if (found->domain() != pair_.domain()) {
    return MakeError(ErrorReason::DOMAIN_MISMATCH, field);
  }
  return found;
}

template <typename Kind>
absl::StatusOr<std::shared_ptr<Kind>> WorkRequestResolver::FindAs(MemoryRegionId id, std::string_view field) const {
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<MemoryRegion> region, FindHere(regions_, id, field));
  absl::StatusOr<std::shared_ptr<Kind>> found = RegionAs<Kind>(std::move(region));
  return found.ok() ? std::move(found) : At(found.status(), field);
}

// One method per operation: its flags, its payload, its own rules.
struct WorkRequestResolver::Visitor {
  const WorkRequestResolver& resolver;
  const uint32_t flags;
  ResolvedRequest& out;

  uint32_t initiator_entries() const { return resolver.pair_.limits().initiator_entries; }

  absl::Status operator()(std::monostate) const { return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, "operation"); }

  absl::Status Send(const Sges& sges, std::string_view name, std::optional<RemoteToken> invalidate) const {
    RNICD_RETURN_IF_ERROR(CheckOpFlags(flags, kOpFlagsOfInitiator | kOpFlagSolicit | kOpFlagInline));
    out.request.work = provider::SendWork{.solicit = (flags & kOpFlagSolicit) != 0, .invalidate = invalidate};
    return resolver.ResolvePayload(
        sges, flags, {.operation = name, .max_entries = initiator_entries(), .may_be_inline = true}, out.request);
  }
  absl::Status operator()(const WorkRequest::Send& send) const { return Send(send.sges, "send", std::nullopt); }
  absl::Status operator()(const WorkRequest::SendAndInvalidate& send) const {
    return Send(send.sges, "send_and_invalidate", send.token);
  }

  absl::Status operator()(const WorkRequest::Receive& receive) const {
    RNICD_RETURN_IF_ERROR(CheckOpFlags(flags, 0));
    out.request.work = provider::ReceiveWork{};
    return resolver.ResolvePayload(receive.sges, flags,
                                   {.operation = "receive", .max_entries = resolver.pair_.limits().receive_entries},
                                   out.request);
  }

  absl::Status operator()(const WorkRequest::Read& read) const {
    RNICD_RETURN_IF_ERROR(CheckOpFlags(flags, kOpFlagsOfInitiator | kOpFlagReadLocalInvalidate));
    if (!resolver.pair_.may_read()) {
      return MakeError(ErrorReason::READS_NOT_AGREED, "read");
    }
    const NdkAdapterInfo& info = resolver.adapter().info();
    const bool can_invalidate = (info.adapter_flags & kAdapterFlagReadLocalInvalidate) != 0;
    out.request.work =
        provider::ReadWork{.remote_address = read.remote.address,
                           .remote_token = read.remote.token,
                           .local_invalidate = can_invalidate && (flags & kOpFlagReadLocalInvalidate) != 0};
    return resolver.ResolvePayload(
        read.sges, flags, {.operation = "read", .max_entries = info.max_read_request_sge, .is_read_sink = true},
        out.request);
  }

  absl::Status operator()(const WorkRequest::Write& write) const {
    RNICD_RETURN_IF_ERROR(CheckOpFlags(flags, kOpFlagsOfInitiator | kOpFlagInline));
    out.request.work = provider::WriteWork{.remote_address = write.remote.address, .remote_token = write.remote.token};
    return resolver.ResolvePayload(write.sges, flags,
                                   {.operation = "write", .max_entries = initiator_entries(), .may_be_inline = true},
                                   out.request);
  }

  absl::Status operator()(const WorkRequest::FastRegister& operation) const {
    RNICD_RETURN_IF_ERROR(
        CheckOpFlags(flags, kOpFlagsOfInitiator | kOpFlagRemoteRead | kOpFlagRemoteWrite | kOpFlagReadSink));
    return resolver.ResolveFastRegister(operation, flags, out);
  }

  absl::Status operator()(const WorkRequest::Invalidate& operation) const {
    RNICD_RETURN_IF_ERROR(CheckOpFlags(flags, kOpFlagsOfInitiator));
    return resolver.ResolveInvalidate(operation, out);
  }

  absl::Status operator()(const WorkRequest::Bind& operation) const {
    RNICD_RETURN_IF_ERROR(CheckOpFlags(flags, kOpFlagsOfInitiator | kOpFlagRemoteRead | kOpFlagRemoteWrite));
    if ((flags & kOpFlagRemoteWrite) == kOpFlagLocalWrite) {
      return MakeError(ErrorReason::FLAGS_UNKNOWN, "flags");  // Local write alone is not a flag of Bind.
    }
    return resolver.ResolveBind(operation, flags, out);
  }
};

absl::StatusOr<ResolvedRequest> WorkRequestResolver::Resolve(const WorkRequest& request) const {
  absl::StatusOr<ResolvedRequest> resolved(absl::in_place);
  resolved->request.request_context = request.request_context;
  resolved->request.silent_success = (request.flags & kOpFlagSilentSuccess) != 0;
  resolved->request.read_fence = (request.flags & kOpFlagReadFence) != 0;
  RNICD_RETURN_IF_ERROR(std::visit(Visitor{*this, request.flags, *resolved}, request.operation));
  return resolved;
}

absl::Status WorkRequestResolver::ResolveInline(const Sges& sges, std::string_view operation,
                                                provider::WorkRequest& out) const {
  auto& data = out.payload.emplace<provider::InlineData>();
  for (size_t index = 0; index < sges.size(); ++index) {
    const std::span<const std::byte> bytes = sges[index].inline_data;
    if (bytes.size() != sges[index].length) {
      return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, SgeField(operation, index, "length"));
    }
    if (bytes.size() > pair_.limits().inline_bytes - data.size()) {
      return MakeError(ErrorReason::INLINE_TOO_LONG, std::string(operation) + ".sges");
    }
    data.insert(data.end(), bytes.begin(), bytes.end());
  }
  return absl::OkStatus();
}

absl::StatusOr<Charge> WorkRequestResolver::TakePieces(size_t pieces) const {
  return Charge::Take(ledger_, Resource::kHeapBytes, pieces * kHeapOfPostedPiece);
}

absl::StatusOr<std::shared_ptr<const void>> WorkRequestResolver::ResolveHost(const Sge& sge,
                                                                             provider::Entries& entries) const {
  RNICD_ASSIGN_OR_RETURN(ResolvedPages bytes,
                         addresses_.ResolveBytes(adapter(), LogicalAddress{sge.address}, sge.length));
  for (const std::span<std::byte> run : bytes.runs) {
    entries.push_back({.host = run, .length = static_cast<uint32_t>(run.size())});
  }
  return std::move(bytes.keep_alive);
}

absl::Status WorkRequestResolver::ResolvePayload(const Sges& sges, uint32_t flags, const PayloadRules& rules,
                                                 provider::WorkRequest& out) const {
  if (rules.may_be_inline && (flags & kOpFlagInline) != 0) {
    return ResolveInline(sges, rules.operation, out);
  }
  if (sges.size() > rules.max_entries) {
    return MakeError(ErrorReason::SGE_COUNT, std::string(rules.operation) + ".sges");
  }
  const NdkAdapterInfo& info = adapter().info();
  const LocalToken privileged = pair_.domain()->privileged_token();
  const bool sink_needs_region = rules.is_read_sink && (info.adapter_flags & kAdapterFlagReadSinkNotRequired) == 0;
  if (!FitInOneTransfer(sges, info.max_transfer_length)) {
    return MakeError(ErrorReason::TRANSFER_TOO_LONG, std::string(rules.operation) + ".sges");
  }
  auto& entries = out.payload.emplace<provider::Entries>();
  std::shared_ptr<PayloadBacking> backing;
  for (size_t index = 0; index < sges.size(); ++index) {
    const Sge& sge = sges[index];
    if (sge.token != privileged) {
      entries.push_back(
          {.address = VirtualAddress{sge.address}, .length = static_cast<uint32_t>(sge.length), .token = sge.token});
      continue;
    }
    if (sink_needs_region) {
      return MakeError(ErrorReason::READ_SINK_PRIVILEGED, SgeField(rules.operation, index, "token"));
    }
    backing = backing != nullptr ? std::move(backing) : std::make_shared<PayloadBacking>();
    absl::StatusOr<std::shared_ptr<const void>> pages = ResolveHost(sge, entries);
    if (!pages.ok()) {
      return At(pages.status(), SgeField(rules.operation, index, "address"));
    }
    backing->pages.push_back(*std::move(pages));
  }
  if (backing != nullptr) {
    // One SGE may consist of very many pieces of memory; they are charged until the request is complete.
    RNICD_ASSIGN_OR_RETURN(backing->list, Charge::Take(ledger_, Resource::kPostedPages, entries.size()));
    RNICD_ASSIGN_OR_RETURN(backing->heap, TakePieces(entries.size()));
    out.keep_alive = std::move(backing);
  }
  return absl::OkStatus();
}

absl::Status WorkRequestResolver::ResolveFastRegister(const WorkRequest::FastRegister& operation, uint32_t flags,
                                                      ResolvedRequest& out) const {
  RNICD_ASSIGN_OR_RETURN(out.fast_region, FindAs<FastRegion>(operation.region, "fast_register.mr_id"));
  absl::StatusOr<FastRegion::Target> target = out.fast_region->ForFastRegister();
  if (!target.ok()) {
    return At(target.status(), "fast_register.mr_id");
  }
  const AccessRights rights = AccessRightsFromOpFlags(flags);
  if ((rights.remote_read || rights.remote_write) && !target->remote_access) {
    return MakeError(ErrorReason::REGION_NO_REMOTE_ACCESS, "flags");
  }
  RNICD_RETURN_IF_ERROR(CheckFastRegister(operation, target->max_pages));
  absl::StatusOr<ResolvedPages> pages =
      addresses_.ResolvePages(adapter(), operation.pages, operation.fbo, operation.length);
  if (!pages.ok()) {
    return WithFieldPrefix(pages.status(), "fast_register.");
  }
  auto backing = std::make_shared<FastBacking>();
  RNICD_ASSIGN_OR_RETURN(backing->list, Charge::Take(ledger_, Resource::kPostedPages, operation.pages.size()));
  // A list of pages costs as much as the pieces that it amounts to: one if the pages adjoin.
  RNICD_ASSIGN_OR_RETURN(backing->heap, TakePieces(pages->runs.size() + pages->kept));
  backing->runs = std::move(pages->runs);
  backing->pages = std::move(pages->keep_alive);
  out.fast_registration = {
      .base = operation.base_address, .length = operation.length, .pages = operation.pages.size(), .rights = rights};
  const PageRuns& runs = backing->runs;
  out.request.work = provider::FastRegisterWork{.region = std::move(target->device),
                                                .base = operation.base_address,
                                                .length = operation.length,
                                                .rights = rights,
                                                .runs = runs,
                                                .backing = std::move(backing)};
  return absl::OkStatus();
}

absl::Status WorkRequestResolver::ResolveInvalidate(const WorkRequest::Invalidate& operation,
                                                    ResolvedRequest& out) const {
  if (const auto* id = std::get_if<MemoryRegionId>(&operation.target)) {
    RNICD_ASSIGN_OR_RETURN(const std::shared_ptr<FastRegion> region, FindAs<FastRegion>(*id, "invalidate.mr_id"));
    absl::StatusOr<FastRegion::Target> target = region->ForFastRegister();
    if (!target.ok()) {
      return At(target.status(), "invalidate.mr_id");
    }
    out.request.work = provider::InvalidateWork{.region = std::move(target->device), .window = nullptr};
    return absl::OkStatus();
  }
  if (const auto* id = std::get_if<MemoryWindowId>(&operation.target)) {
    RNICD_ASSIGN_OR_RETURN(const std::shared_ptr<MemoryWindow> window, FindHere(windows_, *id, "invalidate.mw_id"));
    RNICD_ASSIGN_OR_RETURN(std::shared_ptr<provider::DeviceMemoryWindow> device, DeviceOf(*window, "invalidate.mw_id"));
    out.request.work = provider::InvalidateWork{.region = nullptr, .window = std::move(device)};
    return absl::OkStatus();
  }
  return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, "invalidate.target");
}

absl::Status WorkRequestResolver::ResolveBind(const WorkRequest::Bind& operation, uint32_t flags,
                                              ResolvedRequest& out) const {
  RNICD_ASSIGN_OR_RETURN(const std::shared_ptr<OrdinaryRegion> region,
                         FindAs<OrdinaryRegion>(operation.region, "bind.mr_id"));
  RNICD_ASSIGN_OR_RETURN(out.window, FindHere(windows_, operation.window, "bind.mw_id"));
  const absl::StatusOr<OrdinaryRegion::BindTarget> target = region->ForBind();
  if (!target.ok()) {
    return At(target.status(), "bind.mr_id");
  }
  if (operation.length == 0) {
    return MakeError(ErrorReason::LENGTH_ZERO, "bind.length");
  }
  if (operation.length > adapter().info().max_window_size) {
    return MakeError(ErrorReason::ABOVE_ADAPTER_LIMIT, "bind.length");
  }
  if (!CheckedRange::Make(target->base.value, target->length)->Contains(operation.address.value, operation.length)) {
    return MakeError(ErrorReason::WINDOW_OUTSIDE_REGION, "bind.virtual_address");
  }
  const AccessRights rights = AccessRightsFromOpFlags(flags);
  if (rights.remote_write && !target->rights.local_write) {
    return MakeError(ErrorReason::REGION_RIGHTS_INSUFFICIENT, "flags");
  }
  absl::StatusOr<Closable::Hold> hold = region->Acquire();
  if (!hold.ok()) {
    return At(hold.status(), "bind.mr_id");
  }
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<provider::DeviceMemoryWindow> device, DeviceOf(*out.window, "bind.mw_id"));
  out.request.work = provider::BindWork{.window = std::move(device),
                                        .region = target->device,
                                        .base = operation.address,
                                        .length = operation.length,
                                        .rights = rights,
                                        .backing = std::make_shared<Closable::Hold>(*std::move(hold))};
  return absl::OkStatus();
}

}  // namespace rnicd::core
