#pragma once

#include <cstdint>

namespace rnicd {

struct NdkVersion {
  uint16_t major = 1;
  uint16_t minor = 2;
  friend bool operator==(const NdkVersion&, const NdkVersion&) = default;
};

// NDK_ADAPTER_FLAG_ bits. Source: ndkinfo.h.
inline constexpr uint32_t kAdapterFlagInOrderDma = 0x1;
inline constexpr uint32_t kAdapterFlagReadSinkNotRequired = 0x2;
inline constexpr uint32_t kAdapterFlagReadLocalInvalidate = 0x10;
inline constexpr uint32_t kAdapterFlagCqResize = 0x100;
inline constexpr uint32_t kAdapterFlagLoopback = 0x10000;

// Source: NDK_RDMA_TECHNOLOGY.
enum class RdmaTechnology : uint32_t { kUndefined = 0, kIwarp = 1, kInfiniBand = 2, kRoce = 3, kRoceV2 = 4 };

// NDK_ADAPTER_INFO, field by field. Units and meanings: proto/rnicd/v1/adapter_service.proto.
struct NdkAdapterInfo {
  NdkVersion version;
  uint32_t vendor_id = 0;
  uint32_t device_id = 0;
  uint64_t max_registration_size = 0;
  uint64_t max_window_size = 0;
  uint32_t frmr_page_count = 0;
  uint32_t max_initiator_request_sge = 0;
  uint32_t max_receive_request_sge = 0;
  uint32_t max_read_request_sge = 0;
  uint32_t max_transfer_length = 0;
  uint32_t max_inline_data_size = 0;
  uint32_t max_inbound_read_limit = 0;
  uint32_t max_outbound_read_limit = 0;
  uint32_t max_receive_queue_depth = 0;
  uint32_t max_initiator_queue_depth = 0;
  uint32_t max_srq_depth = 0;
  uint32_t max_cq_depth = 0;
  uint32_t large_request_threshold = 0;
  uint32_t max_caller_data = 0;
  uint32_t max_callee_data = 0;
  uint32_t adapter_flags = 0;
  RdmaTechnology rdma_technology = RdmaTechnology::kUndefined;
};

}  // namespace rnicd
