#include "provider/verbs/card/verbs_device.h"

#include <array>
#include <cerrno>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "provider/verbs/card/adapter_limits.h"
#include "provider/verbs/card/verbs_status.h"

namespace rnicd::provider {
namespace {

constexpr uint32_t kSiwVendor = 0x626d74;

// Creates queue pairs only to find out what the card accepts.
class TrialQueuePair {
 public:
  TrialQueuePair(VerbsApi& api, ibv_context* context)
      : api_(api), pd_(api.AllocPd(context)), cq_(pd_ != nullptr ? api.CreateCq(context, 2, nullptr) : nullptr) {}
  TrialQueuePair(const TrialQueuePair&) = delete;
  TrialQueuePair& operator=(const TrialQueuePair&) = delete;
  ~TrialQueuePair() {
    if (cq_ != nullptr) {
      api_.DestroyCq(cq_);
    }
    if (pd_ != nullptr) {
      api_.DeallocPd(pd_);
    }
  }
  bool Accepts(uint32_t inline_bytes) const {
    ibv_qp_init_attr attributes = {};
    attributes.send_cq = cq_;
    attributes.recv_cq = cq_;
    attributes.qp_type = IBV_QPT_RC;
    attributes.cap = {
        .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = inline_bytes};
    ibv_qp* const qp = cq_ != nullptr ? api_.CreateQp(pd_, attributes) : nullptr;
    if (qp != nullptr) {
      api_.DestroyQp(qp);
    }
    return qp != nullptr && attributes.cap.max_inline_data >= inline_bytes;
  }

 private:
  VerbsApi& api_;
  ibv_pd* const pd_;
  ibv_cq* const cq_;
};

// Cards do not report their limit for inline data, so it is found by trial. Returns nullopt when even 0 bytes are
// refused, which means that the card does not support reliable connections.
std::optional<uint32_t> LargestInline(VerbsApi& api, ibv_context* context) {
  constexpr std::array<uint32_t, 8> kSizes = {512, 400, 256, 192, 128, 64, 32, 0};
  const TrialQueuePair trial(api, context);
  for (const uint32_t bytes : kSizes) {
    if (trial.Accepts(bytes)) {
      return bytes;
    }
  }
  return std::nullopt;
}

bool IsIwarp(const ibv_context& context) {
  return context.device != nullptr && context.device->transport_type == IBV_TRANSPORT_IWARP;
}

// Empty for an event that is not reported.
std::optional<AdapterEventKind> KindOf(ibv_event_type type) {
  switch (type) {
    case IBV_EVENT_PORT_ACTIVE:
      return AdapterEventKind::kPortUp;
    case IBV_EVENT_PORT_ERR:
      return AdapterEventKind::kPortDown;
    case IBV_EVENT_GID_CHANGE:
      return AdapterEventKind::kAddressChanged;
    default:
      return std::nullopt;
  }
}

}  // namespace

VerbsDevice::VerbsDevice(CardId card, uint8_t port, std::string name, NdkAdapterInfo info, bool can_bind_type2,
                         uint64_t max_regions)
    : card_(std::move(card)),
      port_(port),
      name_(std::move(name)),
      info_(info),
      can_bind_type2_(can_bind_type2),
      max_regions_(max_regions),
      iwarp_(info_.rdma_technology == RdmaTechnology::kIwarp
                 ? std::make_unique<IwarpCard>(IwarpCard{.is_siw = info_.vendor_id == kSiwVendor})
                 : nullptr) {}

absl::StatusOr<std::shared_ptr<VerbsDevice>> VerbsDevice::Inspect(VerbsNode& node, ibv_context* context,
                                                                  const CardId& card, uint8_t port, std::string name) {
  ibv_device_attr device = {};
  if (const int error = node.api.QueryDevice(context, device); error != 0) {
    return VerbStatus(error, "ibv_query_device");
  }
  ibv_port_attr attributes = {};
  if (const int error = node.api.QueryPort(context, port, attributes); error != 0) {
    return VerbStatus(error, "ibv_query_port");
  }
  const std::optional<uint32_t> inline_bytes = LargestInline(node.api, context);
  if (!inline_bytes.has_value()) {
    return VerbStatus(EOPNOTSUPP, "ibv_create_qp");
  }
  const bool can_bind_type2 =
      (device.device_cap_flags & (IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_MEM_WINDOW_TYPE_2B)) != 0;
  return std::shared_ptr<VerbsDevice>(new VerbsDevice(
      card, port, std::move(name), AdapterLimits(device, attributes, *inline_bytes, node.options, IsIwarp(*context)),
      can_bind_type2, node.options.max_regions));
}

absl::StatusOr<PortAddress> VerbsDevice::CurrentAddress(VerbsNode& node, ibv_context* context) const {
  ibv_port_attr attributes = {};
  if (const int error = node.api.QueryPort(context, port_, attributes); error != 0) {
    return VerbStatus(error, "ibv_query_port");
  }
  PortAddress address{.lid = attributes.lid,
                      .mtu = attributes.active_mtu,
                      .ethernet = attributes.link_layer == IBV_LINK_LAYER_ETHERNET};
  const std::vector<GidEntry> table = node.api.QueryGids(context, port_);
  const GidEntry* const chosen = ChooseGid(table, node.options.gid);
  if (chosen == nullptr) {
    return VerbStatus(ENODATA, "ibv_query_gid_table");
  }
  address.gid = chosen->gid;
  return address;
}

absl::StatusOr<uint8_t> VerbsDevice::FindGid(VerbsNode& node, ibv_context* context, const ibv_gid& gid) const {
  const std::vector<GidEntry> table = node.api.QueryGids(context, port_);
  const GidEntry* const found = ChooseGid(table, GidRule{.kind = GidRule::Kind::kAddress, .address = gid});
  if (found == nullptr || found->index > UINT8_MAX) {
    return MakeError(ErrorReason::QP_NOT_CONNECTABLE, "qp_id");
  }
  return static_cast<uint8_t>(found->index);
}

bool VerbsDevice::PortIsActive(VerbsNode& node, ibv_context* context) const {
  ibv_port_attr attributes = {};
  return node.api.QueryPort(context, port_, attributes) == 0 && attributes.state == IBV_PORT_ACTIVE;
}

void VerbsDevice::OnAsyncEvent(VerbsNode& node, ibv_context* context, const ibv_async_event& event) {
  if (event.event_type == IBV_EVENT_DEVICE_FATAL) {
    Remove(node);
    return;
  }
  ibv_port_attr attributes = {};
  const int error = node.api.QueryPort(context, port_, attributes);
  if (MeansRemoved(error)) {
    // The kernel sends no event when a software card is removed; the card only stops responding.
    Remove(node);
    return;
  }
  const std::optional<AdapterEventKind> kind = KindOf(event.event_type);
  if (kind.has_value() && event.element.port_num == port_) {
    node.Report(name_, *kind);
  }
}

void VerbsDevice::Remove(VerbsNode& node) {
  if (!removed_.exchange(true)) {
    node.Report(name_, AdapterEventKind::kRemoved);
  }
}

absl::Status VerbsDevice::AddRegion(VerbsNode& node) {
  const uint64_t before = regions_.fetch_add(1, std::memory_order_relaxed);
  node.counts.regions.fetch_add(1, std::memory_order_relaxed);
  if (max_regions_ != 0 && before >= max_regions_) {
    RemoveRegion(node);
    return MakeError(ErrorReason::DEVICE_OUT_OF_RESOURCES);
  }
  return absl::OkStatus();
}

void VerbsDevice::RemoveRegion(VerbsNode& node) {
  regions_.fetch_sub(1, std::memory_order_relaxed);
  node.counts.regions.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace rnicd::provider
