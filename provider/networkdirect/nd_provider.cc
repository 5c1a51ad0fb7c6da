#include "provider/networkdirect/nd_provider.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "provider/engine/engine_queue_pair.h"
#include "provider/networkdirect/card/nd_status.h"
#include "provider/networkdirect/fast/nd_fast_region.h"
#include "provider/networkdirect/fast/nd_window.h"
#include "provider/networkdirect/memory/nd_mappings.h"
#include "provider/networkdirect/memory/nd_memory_region.h"
#include "provider/networkdirect/queue/nd_endpoint.h"

namespace rnicd::provider {
namespace {

// Each queue pair has a completion queue of the card to itself; core keeps the completions.
class NdCompletionQueue final : public DeviceCompletionQueue {
 public:
  absl::Status Resize(uint32_t /*depth*/) override { return absl::OkStatus(); }
};

class NdProtectionDomain final : public DeviceProtectionDomain {
 public:
  explicit NdProtectionDomain(std::shared_ptr<NdDomain> domain) : domain_(std::move(domain)) {}
  ~NdProtectionDomain() override { domain_->mappings().Drop(*domain_); }

  absl::StatusOr<std::unique_ptr<DeviceMemoryRegion>> RegisterMemory(const DeviceRegistration& registration) override {
    return NdMemoryRegion::Register(domain_, registration);
  }
  LocalToken privileged_token() const override { return LocalToken{domain_->privileged_token()}; }
  absl::StatusOr<std::shared_ptr<DeviceFastRegion>> CreateFastRegion(uint32_t max_pages,
                                                                     bool /*remote_access*/) override {
    RNICD_RETURN_IF_ERROR(CheckPresence());
    if (max_pages > domain_->node().options.max_fast_register_pages) {
      return MakeError(ErrorReason::PAGE_COUNT_UNSUPPORTED, "adapter_page_count");
    }
    return std::make_shared<NdFastRegion>(domain_);
  }
  absl::StatusOr<std::shared_ptr<DeviceMemoryWindow>> CreateMemoryWindow() override {
    RNICD_RETURN_IF_ERROR(CheckPresence());
    return std::make_shared<NdWindow>(domain_);
  }
  absl::StatusOr<std::unique_ptr<DeviceQueuePair>> CreateQueuePair(const QueuePairLimits& limits,
                                                                   DeviceCompletionQueue& /*receive_queue*/,
                                                                   DeviceCompletionQueue& /*initiator_queue*/,
                                                                   QueuePairListener& listener) override {
    RNICD_ASSIGN_OR_RETURN(std::shared_ptr<QueuePairEngine> engine, NdEndpoint::Create(domain_, limits, listener));
    return std::make_unique<EngineQueuePair>(std::move(engine));
  }

 private:
  absl::Status CheckPresence() const {
    return domain_->device().removed() ? MakeError(ErrorReason::DEVICE_REMOVED) : absl::OkStatus();
  }

  const std::shared_ptr<NdDomain> domain_;
};

class NdAdapter final : public DeviceAdapter {
 public:
  NdAdapter(std::shared_ptr<NdNode> node, std::shared_ptr<NdDevice> device)
      : node_(std::move(node)), device_(std::move(device)), mappings_(std::make_shared<NdMappings>()) {}

  const NdkAdapterInfo& info() const override { return device_->info(); }
  bool removed() const override { return device_->removed(); }
  absl::StatusOr<std::unique_ptr<DeviceProtectionDomain>> CreateProtectionDomain() override {
    RNICD_ASSIGN_OR_RETURN(std::shared_ptr<NdDomain> domain, NdDomain::Create(node_, device_, mappings_));
    return std::make_unique<NdProtectionDomain>(std::move(domain));
  }
  absl::StatusOr<std::unique_ptr<DeviceCompletionQueue>> CreateCompletionQueue(uint32_t /*depth*/) override {
    return std::make_unique<NdCompletionQueue>();
  }
  std::unique_ptr<DeviceMapping> AddMapping(std::span<const std::span<std::byte>> runs) override {
    return mappings_->Add(runs);
  }

 private:
  const std::shared_ptr<NdNode> node_;
  const std::shared_ptr<NdDevice> device_;
  const std::shared_ptr<NdMappings> mappings_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<NetworkDirectProvider>> NetworkDirectProvider::Create(
    const NetworkDirectOptions& options, RandomSource& random, AdapterEventListener on_event) {
  std::vector<std::string> remarks;
  std::vector<NdSource> sources;
  if (options.library.empty()) {
    sources = LoadNdSourcesOfCatalogue(remarks);
  } else {
    RNICD_ASSIGN_OR_RETURN(NdSource source, LoadNdSource(options.library));
    sources.push_back(std::move(source));
  }
  return CreateWith(options, random, std::move(sources), std::move(remarks), on_event);
}

absl::StatusOr<std::unique_ptr<NetworkDirectProvider>> NetworkDirectProvider::Create(
    const NetworkDirectOptions& options, RandomSource& random, std::vector<NdSource> sources,
    AdapterEventListener on_event) {
  return CreateWith(options, random, std::move(sources), {}, on_event);
}

absl::StatusOr<std::unique_ptr<NetworkDirectProvider>> NetworkDirectProvider::CreateWith(
    const NetworkDirectOptions& options, RandomSource& random, std::vector<NdSource> sources,
    std::vector<std::string> remarks, const AdapterEventListener& on_event) {
  std::unique_ptr<NetworkDirectProvider> provider(new NetworkDirectProvider(
      std::make_shared<NdNode>(std::move(sources), options, random, [](NdEndpoint& endpoint) { endpoint.OnTick(); })));
  for (const NdSource& source : provider->node_->sources) {
    provider->AddCards(source, on_event, remarks);
  }
  if (provider->devices_.empty()) {
    return absl::NotFoundError("no RDMA card can be used: " + absl::StrJoin(remarks, "; "));
  }
  for (const std::string& remark : remarks) {
    on_event({.adapter = remark, .kind = AdapterEventKind::kLeftOut});
  }
  return provider;
}

void NetworkDirectProvider::AddCards(const NdSource& source, const AdapterEventListener& on_event,
                                     std::vector<std::string>& remarks) {
  const absl::StatusOr<std::vector<NdAddress>> addresses = ListNdAddresses(*source.provider);
  if (!addresses.ok()) {
    remarks.emplace_back(addresses.status().message());
    return;
  }
  for (const NdAddress& address : *addresses) {
    UINT64 id = 0;
    const HRESULT result = source.provider->ResolveAddress(address.get(), address.bytes(), &id);
    if (NdFailed(result)) {
      remarks.push_back(absl::StrCat("nd-", address.Text(), ": ", NdResultName(result)));
      continue;
    }
    const auto is_same = [&](const auto& device) {
      return &device->provider() == source.provider.get() && device->id() == id;
    };
    if (std::ranges::any_of(devices_, is_same)) {
      continue;  // A further address of the same card.
    }
    absl::StatusOr<std::shared_ptr<NdDevice>> device =
        NdDevice::Inspect(source.provider, id, address, node_->options, on_event);
    if (device.ok()) {
      devices_.push_back(*std::move(device));
    } else {
      remarks.push_back(absl::StrCat("nd-", address.Text(), ": ", device.status().message()));
    }
  }
}

// The last owner destroys the node; without Stop that could be a thread of its loops, which cannot join itself.
NetworkDirectProvider::~NetworkDirectProvider() { node_->Stop(); }

std::vector<AdapterDescription> NetworkDirectProvider::ListAdapters() const {
  std::vector<AdapterDescription> adapters;
  const bool windows = node_->options.fast_engine == NdFastEngine::kAuto;
  for (const std::shared_ptr<NdDevice>& device : devices_) {
    if (!device->removed()) {
      adapters.push_back({.name = device->name(),
                          .numa_node = -1,
                          .port_folder = "",
                          .fast_engine = windows ? "window" : "registration",
                          .fast_engine_reason = windows ? "where one window can express it" : "as the options want",
                          .info = device->info()});
    }
  }
  return adapters;
}

absl::StatusOr<std::unique_ptr<DeviceAdapter>> NetworkDirectProvider::OpenAdapter(std::string_view adapter_name) {
  const auto found = std::ranges::find_if(devices_, [&](const auto& each) { return each->name() == adapter_name; });
  if (found == devices_.end()) {
    return MakeError(ErrorReason::ADAPTER_NOT_FOUND, "adapter_name");
  }
  if ((*found)->removed()) {
    return MakeError(ErrorReason::DEVICE_REMOVED);
  }
  return std::make_unique<NdAdapter>(node_, *found);
}

uint64_t NetworkDirectProvider::live_regions() const {
  uint64_t regions = 0;
  for (const std::shared_ptr<NdDevice>& device : devices_) {
    regions += device->regions();
  }
  return regions;
}

FastRegistrationCounts NetworkDirectProvider::fast_registrations() const {
  FastRegistrationCounts sum;
  for (const std::shared_ptr<NdDevice>& device : devices_) {
    const FastRegistrationCounts counts = device->fast_registrations();
    sum.direct += counts.direct;
    sum.windowed += counts.windowed;
  }
  return sum;
}

}  // namespace rnicd::provider
