#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ndk/adapter_info.h"
#include "provider/api/adapter_event.h"
#include "provider/api/device.h"
#include "provider/networkdirect/card/com_ptr.h"
#include "provider/networkdirect/card/nd2.h"
#include "provider/networkdirect/card/nd_options.h"

namespace rnicd::provider {

// A network address of a card, as the card wants it.
class NdAddress {
 public:
  NdAddress() = default;
  // Takes at most as many bytes as fit.
  NdAddress(const sockaddr* address, size_t bytes);

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  ULONG bytes() const { return bytes_; }
  bool is_ip() const { return get()->sa_family == AF_INET || get()->sa_family == AF_INET6; }
  // The same address with port 0: the card chooses one.
  NdAddress WithoutPort() const;
  // "10.0.0.5"; IPv6 as eight groups of hex digits without leading zeros.
  std::string Text() const;
  // For a method that fills it in.
  sockaddr* out() { return reinterpret_cast<sockaddr*>(&storage_); }
  ULONG* out_bytes() { return &bytes_; }

 private:
  sockaddr_storage storage_ = {};
  ULONG bytes_ = sizeof(sockaddr_storage);
};

// The addresses that a method with the signature of IND2Provider::QueryAddressList lists.
// Errors: those of NdStatus.
absl::StatusOr<std::vector<NdAddress>> ListNdAddresses(IND2Provider& provider);

// NDK's description of a card, within the options.
NdkAdapterInfo NdAdapterLimits(const ND2_ADAPTER_INFO& card, const NetworkDirectOptions& options);

// Method of one fast registration.
enum class NdFastEngineUsed : uint8_t { kDirect, kWindowed };

// A card: its name, its limits, and whether it has been removed. Shared by every session that opens it.
// Threads: safe.
class NdDevice {
 public:
  // Queries the card. Errors: those of NdStatus.
  static absl::StatusOr<std::shared_ptr<NdDevice>> Inspect(ComPtr<IND2Provider> provider, UINT64 id,
                                                           const NdAddress& address,
                                                           const NetworkDirectOptions& options,
                                                           AdapterEventListener on_event);

  // "nd-" and the first address.
  const std::string& name() const { return name_; }
  IND2Provider& provider() const { return *provider_; }
  // Unique among the cards of its provider.
  UINT64 id() const { return id_; }
  const NdAddress& address() const { return address_; }
  const NdkAdapterInfo& info() const { return info_; }

  // Records whether the result means that the card is gone, and returns the result.
  HRESULT Observe(HRESULT result);
  bool removed() const { return removed_.load(std::memory_order_relaxed); }

  // Counts memory regions against the limit. Errors: DEVICE_OUT_OF_RESOURCES.
  absl::Status AddRegions(uint64_t count);
  void RemoveRegions(uint64_t count) { regions_.fetch_sub(count, std::memory_order_relaxed); }
  uint64_t regions() const { return regions_.load(std::memory_order_relaxed); }
  void CountFastRegistration(NdFastEngineUsed engine);
  FastRegistrationCounts fast_registrations() const;

 private:
  NdDevice(ComPtr<IND2Provider> provider, UINT64 id, const NdAddress& address, NdkAdapterInfo info,
           uint64_t max_regions, AdapterEventListener on_event)
      : provider_(std::move(provider)),
        name_("nd-" + address.Text()),
        id_(id),
        address_(address),
        info_(info),
        max_regions_(max_regions),
        on_event_(std::move(on_event)) {}

  const ComPtr<IND2Provider> provider_;
  const std::string name_;
  const UINT64 id_;
  const NdAddress address_;
  const NdkAdapterInfo info_;
  const uint64_t max_regions_;
  const AdapterEventListener on_event_;
  std::atomic<bool> removed_ = false;
  std::atomic<uint64_t> regions_ = 0;
  std::atomic<uint64_t> direct_ = 0;
  std::atomic<uint64_t> windowed_ = 0;
};

}  // namespace rnicd::provider
