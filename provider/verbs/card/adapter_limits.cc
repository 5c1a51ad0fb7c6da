#include "provider/verbs/card/adapter_limits.h"

#include <algorithm>
#include <limits>

namespace rnicd::provider {
namespace {

// The fast-register size that most workloads use, in pages.
constexpr uint32_t kFrmrPageHint = 256;
// Below this size a copy costs less than a registration and a round trip.
constexpr uint32_t kLargeRequestBytes = 65536;
// Private data that rdma_cm carries for an RC connection: 56 bytes with the request, 148 with a rejection, the shorter
// of both answers.
constexpr uint32_t kCallerDataBytes = 56;
constexpr uint32_t kCalleeDataBytes = 148;
// Together with 4 bytes of the read limits the length has to fit in a byte for siw, which sends none at 256.
constexpr uint32_t kIwarpDataBytes = 251;
constexpr uint32_t kMinCqDepth = 65536;
constexpr uint32_t kMaxTransferBytes = std::numeric_limits<int32_t>::max();
constexpr uint32_t kPossibleFlags =
    kAdapterFlagReadSinkNotRequired | kAdapterFlagReadLocalInvalidate | kAdapterFlagCqResize | kAdapterFlagLoopback;

// A driver's "unlimited" may be negative.
uint32_t Count(int value) { return static_cast<uint32_t>(std::max(value, 0)); }

uint32_t Less(uint32_t value, uint32_t amount) { return value > amount ? value - amount : 0; }

RdmaTechnology TechnologyOf(uint8_t link_layer, bool is_iwarp) {
  if (is_iwarp) {
    return RdmaTechnology::kIwarp;
  }
  switch (link_layer) {
    case IBV_LINK_LAYER_INFINIBAND:
      return RdmaTechnology::kInfiniBand;
    case IBV_LINK_LAYER_ETHERNET:
      return RdmaTechnology::kRoceV2;
    default:
      return RdmaTechnology::kUndefined;
  }
}

}  // namespace

NdkAdapterInfo AdapterLimits(const ibv_device_attr& device, const ibv_port_attr& port, uint32_t max_inline_bytes,
                             const VerbsOptions& options, bool is_iwarp) {
  NdkAdapterInfo info;
  info.vendor_id = device.vendor_id;
  info.device_id = device.vendor_part_id;
  info.max_registration_size = std::min(device.max_mr_size, options.max_registration_bytes);
  info.max_window_size = info.max_registration_size;
  info.frmr_page_count = std::min(kFrmrPageHint, options.max_fast_register_pages);
  info.max_initiator_request_sge = Count(device.max_sge);
  info.max_receive_request_sge = Count(device.max_sge);
  // A read takes its entries from the send queue, so the limit of that queue applies too.
  info.max_read_request_sge =
      device.max_sge_rd > 0 ? std::min(Count(device.max_sge_rd), Count(device.max_sge)) : Count(device.max_sge);
  info.max_transfer_length = std::min(port.max_msg_sz, kMaxTransferBytes);
  info.max_inline_data_size = max_inline_bytes;
  info.max_inbound_read_limit = Count(device.max_qp_rd_atom);
  info.max_outbound_read_limit = Count(device.max_qp_init_rd_atom);
  // Both queues of a pair report to one completion queue, so each may have half of it.
  const uint32_t half = Less(Count(device.max_cqe), kExtraSendRequests) / 2;
  info.max_receive_queue_depth = std::min(Count(device.max_qp_wr), half);
  info.max_initiator_queue_depth = std::min(Less(Count(device.max_qp_wr), kExtraSendRequests), half);
  info.max_srq_depth = 0;
  // Core keeps the completions that owners poll in its own memory, so the card does not bound this queue. A bound is
  // needed all the same; a card with a higher limit raises it, because its users may rely on such depths.
  info.max_cq_depth = std::max(kMinCqDepth, Count(device.max_cqe));
  info.large_request_threshold = kLargeRequestBytes;
  info.max_caller_data = is_iwarp ? kIwarpDataBytes : kCallerDataBytes;
  info.max_callee_data = is_iwarp ? kIwarpDataBytes : kCalleeDataBytes;
  info.adapter_flags = options.adapter_flags & kPossibleFlags;
  info.rdma_technology = TechnologyOf(port.link_layer, is_iwarp);
  return info;
}

}  // namespace rnicd::provider
