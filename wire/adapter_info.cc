#include "wire/adapter_info.h"

#include <limits>

#include "base/status.h"

namespace rnicd::wire {

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

NdkAdapterInfo FromWire(const v1::NdkAdapterInfo& info) {
  return NdkAdapterInfo{.version = {.major = static_cast<uint16_t>(info.version().major()),
                                    .minor = static_cast<uint16_t>(info.version().minor())},
                        .vendor_id = info.vendor_id(),
                        .device_id = info.device_id(),
                        .max_registration_size = info.max_registration_size(),
                        .max_window_size = info.max_window_size(),
                        .frmr_page_count = info.frmr_page_count(),
                        .max_initiator_request_sge = info.max_initiator_request_sge(),
                        .max_receive_request_sge = info.max_receive_request_sge(),
                        .max_read_request_sge = info.max_read_request_sge(),
                        .max_transfer_length = info.max_transfer_length(),
                        .max_inline_data_size = info.max_inline_data_size(),
                        .max_inbound_read_limit = info.max_inbound_read_limit(),
                        .max_outbound_read_limit = info.max_outbound_read_limit(),
                        .max_receive_queue_depth = info.max_receive_queue_depth(),
                        .max_initiator_queue_depth = info.max_initiator_queue_depth(),
                        .max_srq_depth = info.max_srq_depth(),
                        .max_cq_depth = info.max_cq_depth(),
                        .large_request_threshold = info.large_request_threshold(),
                        .max_caller_data = info.max_caller_data(),
                        .max_callee_data = info.max_callee_data(),
                        .adapter_flags = info.adapter_flags(),
                        .rdma_technology = static_cast<RdmaTechnology>(info.rdma_technology())};
}

}  // namespace rnicd::wire
