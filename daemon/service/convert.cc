#include "daemon/service/convert.h"

#include <limits>
#include <variant>

#include "base/status.h"
#include "daemon/wire/error_detail.h"

namespace rnicd::service {
namespace {

constexpr uint64_t kHugePageBytes = uint64_t{2} << 20;
constexpr uint64_t kGiantPageBytes = uint64_t{1} << 30;

v1::RequestKind ToWire(core::RequestKind kind) {
  switch (kind) {
    case core::RequestKind::kRegisterMr:
      return v1::REQUEST_KIND_REGISTER_MR;
    case core::RequestKind::kDeregisterMr:
      return v1::REQUEST_KIND_DEREGISTER_MR;
    case core::RequestKind::kCloseMr:
      return v1::REQUEST_KIND_CLOSE_MR;
    case core::RequestKind::kClosePd:
      return v1::REQUEST_KIND_CLOSE_PD;
    case core::RequestKind::kInitializeFastRegisterMr:
      return v1::REQUEST_KIND_INITIALIZE_FAST_REGISTER_MR;
    case core::RequestKind::kCloseCq:
      return v1::REQUEST_KIND_CLOSE_CQ;
    case core::RequestKind::kCloseQp:
      return v1::REQUEST_KIND_CLOSE_QP;
    case core::RequestKind::kCloseMw:
      return v1::REQUEST_KIND_CLOSE_MW;
  }
  return v1::REQUEST_KIND_UNSPECIFIED;
}

v1::RequestCompleted ToWire(const core::RequestCompleted& completed) {
  v1::RequestCompleted wire;
  wire.set_kind(ToWire(completed.kind));
  wire.set_request_context(completed.request_context);
  wire.set_object_id(completed.object_id);
  wire.set_ntstatus(static_cast<uint32_t>(NtStatusOf(completed.status)));
  if (!completed.status.ok()) {
    *wire.mutable_error() = wire::ToErrorDetail(completed.status);
  }
  if (completed.registration.has_value()) {
    *wire.mutable_registration() = service::ToWire(*completed.registration);
  }
  return wire;
}

// Writes the body of an event of any kind.
struct EventFiller {
  v1::WatchEventsResponse& wire;

  void operator()(const core::RequestCompleted& completed) const {
    *wire.mutable_request_completed() = ToWire(completed);
  }
  void operator()(const core::SessionEnding& ending) const {
    wire.mutable_session_ending()->set_cause(std::string(core::EndCauseName(ending.cause)));
  }
  void operator()(const core::CqNotified& notified) const {
    v1::CqNotification* notification = wire.mutable_cq_notification();
    notification->set_cq_id(notified.queue.value);
    notification->set_cq_context(notified.context);
    notification->set_ntstatus(static_cast<uint32_t>(notified.status));
  }
  void operator()(const core::QpDisconnected& disconnected) const {
    wire.mutable_qp_disconnected()->set_qp_id(disconnected.queue_pair.value);
    wire.mutable_qp_disconnected()->set_qp_context(disconnected.context);
  }
};

}  // namespace

v1::NdkVersion ToWire(const NdkVersion& version) {
  v1::NdkVersion wire;
  wire.set_major(version.major);
  wire.set_minor(version.minor);
  return wire;
}

absl::StatusOr<NdkVersion> FromWire(const v1::NdkVersion* version) {
  if (version == nullptr) {
    return NdkVersion{1, 1};
  }
  constexpr uint32_t kMax = std::numeric_limits<uint16_t>::max();
  if (version->major() > kMax || version->minor() > kMax) {
    return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, "version");
  }
  return NdkVersion{static_cast<uint16_t>(version->major()), static_cast<uint16_t>(version->minor())};
}

v1::NdkAdapterInfo ToWire(const NdkAdapterInfo& info) {
  v1::NdkAdapterInfo wire;
  *wire.mutable_version() = ToWire(info.version);
  wire.set_vendor_id(info.vendor_id);
  wire.set_device_id(info.device_id);
  wire.set_max_registration_size(info.max_registration_size);
  wire.set_max_window_size(info.max_window_size);
  wire.set_frmr_page_count(info.frmr_page_count);
  wire.set_max_initiator_request_sge(info.max_initiator_request_sge);
  wire.set_max_receive_request_sge(info.max_receive_request_sge);
  wire.set_max_read_request_sge(info.max_read_request_sge);
  wire.set_max_transfer_length(info.max_transfer_length);
  wire.set_max_inline_data_size(info.max_inline_data_size);
  wire.set_max_inbound_read_limit(info.max_inbound_read_limit);
  wire.set_max_outbound_read_limit(info.max_outbound_read_limit);
  wire.set_max_receive_queue_depth(info.max_receive_queue_depth);
  wire.set_max_initiator_queue_depth(info.max_initiator_queue_depth);
  wire.set_max_srq_depth(info.max_srq_depth);
  wire.set_max_cq_depth(info.max_cq_depth);
  wire.set_large_request_threshold(info.large_request_threshold);
  wire.set_max_caller_data(info.max_caller_data);
  wire.set_max_callee_data(info.max_callee_data);
  wire.set_adapter_flags(info.adapter_flags);
  wire.set_rdma_technology(static_cast<v1::RdmaTechnology>(info.rdma_technology));
  return wire;
}

v1::Registration ToWire(const core::Registration& registration) {
  v1::Registration wire;
  wire.set_base_virtual_address(registration.base.value);
  wire.set_length(registration.length);
  wire.set_local_token(registration.local_token.value);
  wire.set_remote_token(registration.remote_token.value);
  return wire;
}

v1::WatchEventsResponse ToWire(const core::Event& event) {
  v1::WatchEventsResponse wire;
  wire.set_sequence(event.sequence);
  std::visit(EventFiller{wire}, event.body);
  return wire;
}

std::vector<core::MdlEntry> FromWire(const google::protobuf::RepeatedPtrField<v1::MdlEntry>& chain) {
  std::vector<core::MdlEntry> entries;
  entries.reserve(static_cast<size_t>(chain.size()));
  for (const v1::MdlEntry& entry : chain) {
    entries.push_back(core::MdlEntry{.memory = MemoryObjectId{entry.memory_id()},
                                     .offset = entry.byte_offset(),
                                     .count = entry.byte_count(),
                                     .address = VirtualAddress{entry.virtual_address()}});
  }
  return entries;
}

absl::StatusOr<uint64_t> PageBytesFromWire(v1::PageSize page_size) {
  switch (page_size) {
    case v1::PAGE_SIZE_UNSPECIFIED:
    case v1::PAGE_SIZE_4KIB:
      return kNdkPageBytes;
    case v1::PAGE_SIZE_2MIB:
      return kHugePageBytes;
    case v1::PAGE_SIZE_1GIB:
      return kGiantPageBytes;
    default:
      return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, "page_size");
  }
}

v1::PageSize PageSizeToWire(uint64_t page_bytes) {
  switch (page_bytes) {
    case kNdkPageBytes:
      return v1::PAGE_SIZE_4KIB;
    case kHugePageBytes:
      return v1::PAGE_SIZE_2MIB;
    case kGiantPageBytes:
      return v1::PAGE_SIZE_1GIB;
    default:
      return v1::PAGE_SIZE_UNSPECIFIED;
  }
}

void ToWire(const core::Ledger& ledger, google::protobuf::RepeatedPtrField<v1::ResourceUse>* resources) {
  for (size_t index = 0; index < core::kResourceCount; ++index) {
    const auto resource = static_cast<core::Resource>(index);
    v1::ResourceUse* use = resources->Add();
    use->set_name(std::string(core::ResourceName(resource)));
    use->set_used(ledger.used(resource));
    use->set_limit(ledger.limit(resource));
  }
}

v1::RegionInfo ToWire(const core::RegionView& view) {
  v1::RegionInfo wire;
  wire.set_adapter_name(view.adapter_name);
  wire.set_fast_register(view.fast_register);
  wire.set_state(std::string(view.state));
  wire.set_base_virtual_address(view.base.value);
  wire.set_length(view.length);
  wire.set_pages(view.pages);
  wire.set_page_size(PageSizeToWire(view.page_bytes));
  wire.set_flags(MrFlagsFromAccessRights(view.rights));
  return wire;
}

}  // namespace rnicd::service
