#include "client/libfabric/info/attributes.h"

#include <rdma/fi_errno.h>

#include <cstring>

namespace rnicd::fi {
namespace {

constexpr uint64_t kMessageDirections = FI_SEND | FI_RECV;
constexpr uint64_t kRemoteDirections = FI_REMOTE_READ | FI_REMOTE_WRITE;
constexpr uint64_t kRmaDirections = FI_READ | FI_WRITE | kRemoteDirections;
// Needed only where memory is a target of peers.
constexpr int kTargetMrMode = FI_MR_PROV_KEY | FI_MR_VIRT_ADDR;

// A capability without a direction means all directions.
uint64_t WithDirections(uint64_t caps) {
  if ((caps & FI_MSG) != 0 && (caps & kMessageDirections) == 0) {
    caps |= kMessageDirections;
  }
  if ((caps & FI_RMA) != 0 && (caps & kRmaDirections) == 0) {
    caps |= kRmaDirections;
  }
  if ((caps & kDomainCaps) == 0) {
    caps |= kDomainCaps;
  }
  return caps;
}

// An application that asks for no capability, and whose registration modes do not suit a target, gets no target.
uint64_t OfferedCaps(const Hints& hints) {
  if (hints.info.caps != 0) {
    return WithDirections(hints.info.caps);
  }
  const bool suits_target =
      !hints.has_domain || HasOldMrMode(hints) || (hints.domain.mr_mode & kTargetMrMode) == kTargetMrMode;
  return suits_target ? kCaps : kCaps & ~kRemoteDirections;
}

int OfferedMrMode(const Hints& hints, uint64_t caps) {
  if (HasOldMrMode(hints)) {
    return kMrBasic;
  }
  const int common = kMrMode & hints.domain.mr_mode;
  return !hints.has_domain || common == kMrMode ? kMrMode : NeededMrMode(caps, common);
}

template <typename Number>
Number AskedOr(Number asked, Number standard) {
  return asked != 0 ? asked : standard;
}

fi_tx_attr TransmitAttributes(const Hints& hints, uint64_t caps) {
  fi_tx_attr transmit{};
  transmit.caps = caps & kTransmitCaps;
  transmit.op_flags = hints.transmit.op_flags;
  transmit.msg_order = kMessageOrder;
  transmit.comp_order = kCompletionOrder;
  transmit.inject_size = kInjectBytesMax;
  transmit.size = AskedOr(hints.transmit.size, kQueueSizeDefault);
  transmit.iov_limit = kBuffersMax;
  transmit.rma_iov_limit = 1;
  return transmit;
}

fi_rx_attr ReceiveAttributes(const Hints& hints, uint64_t caps) {
  fi_rx_attr receive{};
  receive.caps = caps & kReceiveCaps;
  receive.mode = AcceptsCqData(hints) ? FI_RX_CQ_DATA : 0;
  receive.op_flags = hints.receive.op_flags;
  receive.msg_order = kMessageOrder;
  receive.comp_order = kCompletionOrder;
  receive.size = AskedOr(hints.receive.size, kQueueSizeDefault);
  receive.iov_limit = kBuffersMax;
  return receive;
}

fi_ep_attr EndpointAttributes() {
  fi_ep_attr endpoint{};
  endpoint.type = FI_EP_MSG;
  endpoint.protocol = kProtocol;
  endpoint.protocol_version = kProtocolVersion;
  endpoint.max_msg_size = kMessageBytesMax;
  endpoint.max_order_raw_size = kMessageBytesMax;
  endpoint.max_order_waw_size = kMessageBytesMax;
  endpoint.tx_ctx_cnt = 1;
  endpoint.rx_ctx_cnt = 1;
  return endpoint;
}

// Threads and progress as asked: the provider gives at least that. Data moves in the daemon; connections progress when
// an event queue is read.
void SetModels(const fi_domain_attr& asked, fi_domain_attr& domain) {
  domain.threading = AskedOr(asked.threading, FI_THREAD_SAFE);
  domain.control_progress = FI_PROGRESS_MANUAL;
  domain.data_progress = AskedOr(asked.data_progress, FI_PROGRESS_AUTO);
  domain.resource_mgmt = FI_RM_ENABLED;
  domain.av_type = asked.av_type;
}

fi_domain_attr DomainAttributes(const Hints& hints, uint64_t caps) {
  fi_domain_attr domain{};
  domain.domain = hints.domain.domain;
  SetModels(hints.domain, domain);
  domain.mr_mode = OfferedMrMode(hints, caps);
  domain.mr_key_size = kMrKeyBytes;
  domain.cq_data_size = AcceptsCqData(hints) ? kCqDataBytes : 0;
  domain.cq_cnt = kCqCount;
  domain.ep_cnt = kEndpointCount;
  domain.tx_ctx_cnt = kEndpointCount;
  domain.rx_ctx_cnt = kEndpointCount;
  domain.max_ep_tx_ctx = 1;
  domain.max_ep_rx_ctx = 1;
  domain.mr_iov_limit = 1;
  domain.caps = kDomainCaps;
  domain.mr_cnt = kMrCount;
  return domain;
}

}  // namespace

bool IsRmaTarget(uint64_t caps) { return (caps & FI_RMA) != 0 && (WithDirections(caps) & kRemoteDirections) != 0; }

int NeededMrMode(uint64_t caps, int mode) {
  if (IsRmaTarget(caps)) {
    return mode;
  }
  return (mode & FI_MR_LOCAL) == 0 ? 0 : mode & ~kTargetMrMode;
}

bool HasOldMrMode(const Hints& hints) {
  return FI_VERSION_LT(hints.api_version, FI_VERSION(1, 5)) || (hints.domain.mr_mode & (kMrBasic | kMrScalable)) != 0;
}

bool AcceptsCqData(const Hints& hints) { return ((hints.info.mode | hints.receive.mode) & FI_RX_CQ_DATA) != 0; }

int SetAttributes(const Hints& hints, const char* domain, fi_info& info) {
  info.caps = OfferedCaps(hints);
  *info.tx_attr = TransmitAttributes(hints, info.caps);
  *info.rx_attr = ReceiveAttributes(hints, info.caps);
  *info.ep_attr = EndpointAttributes();
  *info.domain_attr = DomainAttributes(hints, info.caps);
  info.domain_attr->name = strdup(domain);
  info.fabric_attr->fabric = hints.fabric.fabric;
  info.fabric_attr->name = strdup(kName);
  // The library sets prov_name: it refuses that from a provider that is not layered.
  info.fabric_attr->prov_version = kProviderVersion;
  info.fabric_attr->api_version = hints.api_version;
  info.mode = info.rx_attr->mode;
  if ((info.domain_attr->mr_mode & FI_MR_LOCAL) == 0) {
    info.mode |= kLocalMr;
  }
  info.handle = hints.info.handle;
  return info.domain_attr->name == nullptr || info.fabric_attr->name == nullptr ? -FI_ENOMEM : 0;
}

}  // namespace rnicd::fi
