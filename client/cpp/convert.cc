#include "client/cpp/convert.h"

namespace rnicd::inline client {

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

AdapterSummary FromWire(const v1::AdapterSummary& adapter) {
  return AdapterSummary{.name = adapter.name(),
                        .provider = adapter.provider(),
                        .numa_node = adapter.numa_node(),
                        .info = FromWire(adapter.info())};
}

SessionUse FromWire(const v1::GetSessionResponse& session) {
  SessionUse use{.id = SessionId{session.session_id()}, .label = session.label()};
  for (const v1::ResourceUse& resource : session.resources()) {
    use.resources.push_back(ResourceUse{.name = resource.name(), .used = resource.used(), .limit = resource.limit()});
  }
  return use;
}

Registration FromWire(const v1::Registration& registration) {
  return Registration{.base_address = VirtualAddress{registration.base_virtual_address()},
                      .length = registration.length(),
                      .local_token = LocalToken{registration.local_token()},
                      .remote_token = RemoteToken{registration.remote_token()}};
}

PageSize FromWire(v1::PageSize page_size) {
  return page_size == v1::PAGE_SIZE_2MIB ? PageSize::k2MiB : PageSize::k4KiB;
}

v1::PageSize ToWire(PageSize page_size) {
  return page_size == PageSize::k2MiB ? v1::PAGE_SIZE_2MIB : v1::PAGE_SIZE_4KIB;
}

v1::MdlEntry ToWire(const MdlEntry& entry) {
  v1::MdlEntry wire;
  wire.set_memory_id(entry.memory_id.value);
  wire.set_byte_offset(entry.byte_offset);
  wire.set_byte_count(entry.byte_count);
  wire.set_virtual_address(entry.virtual_address.value);
  return wire;
}

}  // namespace rnicd::inline client
