#include "provider/networkdirect/card/nd_device.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "base/status.h"
#include "provider/networkdirect/card/nd_status.h"

namespace rnicd::provider {
namespace {

// The fast-register size that most workloads use, in pages.
constexpr uint32_t kFrmrPageHint = 256;
constexpr uint32_t kMinCqDepth = 65536;
// Flags that mean the same to NDK, and one that the daemon implements for every card.
constexpr uint32_t kCommonFlags = kNdAdapterInOrderDma | kNdAdapterLoopback;
static_assert(kAdapterFlagInOrderDma == kNdAdapterInOrderDma && kAdapterFlagLoopback == kNdAdapterLoopback);

std::string TextOf(const in6_addr& address) {
  std::string text;
  for (size_t group = 0; group < 8; ++group) {
    const unsigned value = (address.s6_addr[2 * group] << 8U) | address.s6_addr[2 * group + 1];
    char digits[8];
    std::snprintf(digits, sizeof(digits), "%s%x", group > 0 ? ":" : "", value);
    text += digits;
  }
  return text;
}

std::string TextOf(const in_addr& address) {
  uint8_t bytes[4];
  std::memcpy(bytes, &address, sizeof(bytes));
  char text[16];
  std::snprintf(text, sizeof(text), "%u.%u.%u.%u", bytes[0], bytes[1], bytes[2], bytes[3]);
  return text;
}

}  // namespace

NdAddress::NdAddress(const sockaddr* address, size_t bytes)
    : bytes_(static_cast<ULONG>(std::min(bytes, sizeof(storage_)))) {
  std::memcpy(&storage_, address, bytes_);
}

NdAddress NdAddress::WithoutPort() const {
  NdAddress result = *this;
  if (get()->sa_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6*>(&result.storage_)->sin6_port = 0;
  } else {
    reinterpret_cast<sockaddr_in*>(&result.storage_)->sin_port = 0;
  }
  return result;
}

std::string NdAddress::Text() const {
  return get()->sa_family == AF_INET6 ? TextOf(reinterpret_cast<const sockaddr_in6*>(&storage_)->sin6_addr)
                                      : TextOf(reinterpret_cast<const sockaddr_in*>(&storage_)->sin_addr);
}

absl::StatusOr<std::vector<NdAddress>> ListNdAddresses(IND2Provider& provider) {
  std::vector<std::byte> buffer;
  ULONG bytes = 0;
  HRESULT result = provider.QueryAddressList(nullptr, &bytes);
  // The list may grow between two calls.
  while (result == kNdBufferOverflow) {
    buffer.resize(bytes);
    result = provider.QueryAddressList(reinterpret_cast<SOCKET_ADDRESS_LIST*>(buffer.data()), &bytes);
  }
  if (NdFailed(result)) {
    return NdStatus(result, "IND2Provider::QueryAddressList");
  }
  std::vector<NdAddress> addresses;
  if (buffer.empty()) {
    return addresses;
  }
  const auto* const list = reinterpret_cast<const SOCKET_ADDRESS_LIST*>(buffer.data());
  for (int index = 0; index < list->iAddressCount; ++index) {
    const SOCKET_ADDRESS& each = list->Address[index];
    const NdAddress address(each.lpSockaddr, static_cast<size_t>(std::max(each.iSockaddrLength, 0)));
    if (address.is_ip()) {
      addresses.push_back(address);
    }
  }
  return addresses;
}

NdkAdapterInfo NdAdapterLimits(const ND2_ADAPTER_INFO& card, const NetworkDirectOptions& options) {
  NdkAdapterInfo info;
  info.vendor_id = card.VendorId;
  info.device_id = card.DeviceId;
  info.max_registration_size = std::min<uint64_t>(card.MaxRegistrationSize, options.max_registration_bytes);
  // The interface's MaxWindowSize is documented as unused.
  info.max_window_size = info.max_registration_size;
  info.frmr_page_count = std::min(kFrmrPageHint, options.max_fast_register_pages);
  info.max_initiator_request_sge = card.MaxInitiatorSge;
  info.max_receive_request_sge = card.MaxReceiveSge;
  info.max_read_request_sge = std::min(card.MaxReadSge, card.MaxInitiatorSge);
  info.max_transfer_length = card.MaxTransferLength;
  info.max_inline_data_size = card.MaxInlineDataSize;
  info.max_inbound_read_limit = card.MaxInboundReadLimit;
  info.max_outbound_read_limit = card.MaxOutboundReadLimit;
  // Both queues of a pair report to one completion queue, so each may have half of it.
  info.max_receive_queue_depth = std::min(card.MaxReceiveQueueDepth, card.MaxCompletionQueueDepth / 2);
  info.max_initiator_queue_depth = std::min(card.MaxInitiatorQueueDepth, card.MaxCompletionQueueDepth / 2);
  info.max_srq_depth = 0;
  // Core keeps the completions that owners poll in its own memory, so the card does not bound this queue.
  info.max_cq_depth = std::max<uint32_t>(kMinCqDepth, card.MaxCompletionQueueDepth);
  info.large_request_threshold = card.LargeRequestThreshold;
  info.max_caller_data = card.MaxCallerData;
  info.max_callee_data = card.MaxCalleeData;
  const uint32_t possible = (card.AdapterFlags & kCommonFlags) | kAdapterFlagReadLocalInvalidate | kAdapterFlagCqResize;
  info.adapter_flags = possible & options.adapter_flags;
  return info;
}

absl::StatusOr<std::shared_ptr<NdDevice>> NdDevice::Inspect(ComPtr<IND2Provider> provider, UINT64 id,
                                                            const NdAddress& address,
                                                            const NetworkDirectOptions& options,
                                                            AdapterEventListener on_event) {
  ComPtr<IND2Adapter> adapter;
  if (const HRESULT result = provider->OpenAdapter(kIidNd2Adapter, id, adapter.out()); NdFailed(result)) {
    return NdStatus(result, "IND2Provider::OpenAdapter");
  }
  ND2_ADAPTER_INFO card = {};
  card.InfoVersion = kNdAdapterInfoVersion;
  ULONG bytes = sizeof(card);
  if (const HRESULT result = adapter->Query(&card, &bytes); NdFailed(result)) {
    return NdStatus(result, "IND2Adapter::Query");
  }
  return std::shared_ptr<NdDevice>(new NdDevice(std::move(provider), id, address, NdAdapterLimits(card, options),
                                                options.max_regions, std::move(on_event)));
}

HRESULT NdDevice::Observe(HRESULT result) {
  if (result == kNdDeviceRemoved && !removed_.exchange(true)) {
    on_event_({.adapter = name_, .kind = AdapterEventKind::kRemoved});
  }
  return result;
}

absl::Status NdDevice::AddRegions(uint64_t count) {
  const uint64_t before = regions_.fetch_add(count, std::memory_order_relaxed);
  if (max_regions_ != 0 && before + count > max_regions_) {
    regions_.fetch_sub(count, std::memory_order_relaxed);
    return MakeError(ErrorReason::DEVICE_OUT_OF_RESOURCES);
  }
  return absl::OkStatus();
}

void NdDevice::CountFastRegistration(NdFastEngineUsed engine) {
  (engine == NdFastEngineUsed::kWindowed ? windowed_ : direct_).fetch_add(1, std::memory_order_relaxed);
}

FastRegistrationCounts NdDevice::fast_registrations() const {
  return {.direct = direct_.load(std::memory_order_relaxed), .windowed = windowed_.load(std::memory_order_relaxed)};
}

}  // namespace rnicd::provider
