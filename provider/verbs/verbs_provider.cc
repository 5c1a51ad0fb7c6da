#include "provider/verbs/verbs_provider.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "provider/engine/engine_queue_pair.h"
#include "provider/verbs/card/card_watch.h"
#include "provider/verbs/card/verbs_context.h"
#include "provider/verbs/card/verbs_device.h"
#include "provider/verbs/connection/card_connections.h"
#include "provider/verbs/engine_choice.h"
#include "provider/verbs/fast/kernel_fast_region.h"
#include "provider/verbs/fast/verbs_fast_region.h"
#include "provider/verbs/fast/verbs_window.h"
#include "provider/verbs/memory/verbs_memory_region.h"
#include "provider/verbs/offered_cards.h"
#include "provider/verbs/queue/verbs_endpoint.h"

namespace rnicd::provider {
namespace {

// No state: core keeps the completions, and each queue pair has its own completion queue on the card.
class VerbsCompletionQueue final : public DeviceCompletionQueue {
 public:
  absl::Status Resize(uint32_t /*depth*/) override { return absl::OkStatus(); }
};

class VerbsProtectionDomain final : public DeviceProtectionDomain {
 public:
  explicit VerbsProtectionDomain(std::shared_ptr<VerbsDomain> domain) : domain_(std::move(domain)) {}

  absl::StatusOr<std::unique_ptr<DeviceMemoryRegion>> RegisterMemory(const DeviceRegistration& registration) override {
    return VerbsMemoryRegion::Register(domain_, registration);
  }
  absl::StatusOr<std::unique_ptr<DeviceMemoryRegion>> RegisterDmabuf(
      const DeviceDmabufRegistration& registration) override {
    return VerbsMemoryRegion::RegisterDmabuf(domain_, registration);
  }
  absl::StatusOr<std::shared_ptr<DeviceFastRegion>> CreateFastRegion(uint32_t max_pages,
                                                                     bool /*remote_access*/) override {
    RNICD_RETURN_IF_ERROR(domain_->device().CheckThere());
    if (max_pages > options().max_fast_register_pages) {
      return MakeError(ErrorReason::PAGE_COUNT_UNSUPPORTED, "adapter_page_count");
    }
    if (domain_->device().engines().kernel) {
      RNICD_RETURN_IF_ERROR(domain_->TakeForKernel());
      if (max_pages <= domain_->kernel_engine()->region_pages_max()) {
        return KernelFastRegion::Create(domain_, max_pages);
      }
    }
    // Also for more pages than one of the kernel's requests can have.
    return GrantFastRegion::Create(domain_);
  }
  LocalToken privileged_token() const override { return LocalToken{domain_->privileged_token()}; }
  absl::StatusOr<std::shared_ptr<DeviceMemoryWindow>> CreateMemoryWindow() override {
    RNICD_RETURN_IF_ERROR(domain_->device().CheckThere());
    return std::make_shared<VerbsWindow>(domain_);
  }
  absl::StatusOr<std::unique_ptr<DeviceQueuePair>> CreateQueuePair(const QueuePairLimits& limits,
                                                                   DeviceCompletionQueue& /*receive_queue*/,
                                                                   DeviceCompletionQueue& /*initiator_queue*/,
                                                                   QueuePairListener& listener) override {
    RNICD_RETURN_IF_ERROR(domain_->device().CheckThere());
    RNICD_ASSIGN_OR_RETURN(std::shared_ptr<QueuePairEngine> engine, VerbsEndpoint::Create(domain_, limits, listener));
    return std::make_unique<EngineQueuePair>(std::move(engine));
  }

 private:
  const VerbsOptions& options() const { return domain_->context().node().options; }

  const std::shared_ptr<VerbsDomain> domain_;
};

class VerbsAdapter final : public DeviceAdapter {
 public:
  VerbsAdapter(std::shared_ptr<CmChannel> channel, std::shared_ptr<VerbsContext> context)
      : context_(std::move(context)), connections_(std::move(channel), context_) {}

  const NdkAdapterInfo& info() const override { return context_->device().info(); }
  bool removed() const override { return context_->device().removed(); }
  absl::StatusOr<std::unique_ptr<DeviceProtectionDomain>> CreateProtectionDomain() override {
    RNICD_ASSIGN_OR_RETURN(std::shared_ptr<VerbsDomain> domain, VerbsDomain::Create(context_));
    return std::make_unique<VerbsProtectionDomain>(std::move(domain));
  }
  absl::StatusOr<std::unique_ptr<DeviceCompletionQueue>> CreateCompletionQueue(uint32_t /*depth*/) override {
    RNICD_RETURN_IF_ERROR(context_->device().CheckThere());
    return std::make_unique<VerbsCompletionQueue>();
  }
  std::unique_ptr<DeviceMapping> AddMapping(std::span<const std::span<std::byte>> runs) override {
    return context_->device().engines().kernel ? context_->pinned_pages().Add(runs) : nullptr;
  }
  std::vector<IpAddress> addresses() const override { return connections_.addresses(); }
  absl::StatusOr<std::unique_ptr<DeviceListener>> Listen(const NetworkAddress& address,
                                                         std::weak_ptr<RequestListener> listener) override {
    RNICD_RETURN_IF_ERROR(context_->device().CheckThere());
    return connections_.Listen(address, std::move(listener));
  }
  absl::StatusOr<std::unique_ptr<DeviceConnector>> CreateConnector(std::weak_ptr<ConnectorListener> listener) override {
    RNICD_RETURN_IF_ERROR(context_->device().CheckThere());
    return connections_.CreateConnector(std::move(listener));
  }
  absl::StatusOr<IpAddress> LocateQueuePair(std::string_view peer_address) const override {
    return connections_.LocateQueuePair(peer_address);
  }

 private:
  const std::shared_ptr<VerbsContext> context_;
  const CardConnections connections_;
};

uint32_t NonZero(uint64_t number) { return std::max(static_cast<uint32_t>(number), 1U); }

absl::Status NoCards(const std::vector<std::string>& remarks) {
  return absl::NotFoundError(absl::StrCat("no RDMA card can be used: ",
                                          remarks.empty() ? "none is there; see that its driver is loaded (ls "
                                                            "/sys/class/infiniband) and /dev/infiniband is visible"
                                                          : absl::StrJoin(remarks, "; ")));
}

}  // namespace

VerbsProvider::VerbsProvider(std::shared_ptr<VerbsNode> node, RdmaCm* cm)
    : node_(std::move(node)), cards_(std::make_shared<OfferedCards>(node_, cm)) {}

// The watch begins before the first list, so that no card comes or goes between the two.
absl::StatusOr<std::unique_ptr<VerbsProvider>> VerbsProvider::Create(const VerbsOptions& options, RandomSource& random,
                                                                     VerbsApi& api, AdapterEventListener on_event,
                                                                     RdmaCm* cm) {
  // NOLINTNEXTLINE(modernize-make-shared): a struct with a mutex cannot be moved into place.
  auto node = std::shared_ptr<VerbsNode>(new VerbsNode{.api = api,
                                                       .options = options,
                                                       .on_event = std::move(on_event),
                                                       .random = random,
                                                       .origin = NonZero(random.Next())});
  std::unique_ptr<VerbsProvider> provider(new VerbsProvider(std::move(node), cm));
  UniqueFd news = api.cards().Watch();
  std::vector<std::string> remarks;
  RNICD_RETURN_IF_ERROR(provider->cards_->Start(remarks));
  if (provider->cards_->ports().empty()) {
    return NoCards(remarks);
  }
  if (cm != nullptr) {
    provider->OpenChannel(*cm, remarks);
  }
  for (const std::string& remark : remarks) {
    provider->node_->Report(remark, AdapterEventKind::kLeftOut);
  }
  provider->watch_ = CardWatch::Start(api.cards(), std::move(news), options.look_interval,
                                      [cards = provider->cards_] { return cards->Look(); });
  return provider;
}

// Stops the callbacks of cards that are about to be closed.
VerbsProvider::~VerbsProvider() {
  if (watch_ != nullptr) {
    watch_->Stop();
  }
  if (channel_ != nullptr) {
    channel_->Stop();
  }
  node_->loop.Stop();
}

void VerbsProvider::OpenChannel(RdmaCm& cm, std::vector<std::string>& remarks) {
  absl::StatusOr<std::shared_ptr<CmChannel>> channel = CmChannel::Open(cm);
  if (channel.ok()) {
    channel_ = *std::move(channel);
  } else {
    remarks.push_back(absl::StrCat("rdma_cm (connections by address): ", channel.status().message()));
  }
}

std::vector<AdapterDescription> VerbsProvider::ListAdapters() const {
  std::vector<AdapterDescription> adapters;
  for (const std::shared_ptr<VerbsDevice>& device : cards_->ports()) {
    if (device->removed()) {
      continue;
    }
    const std::string& card = device->card().name;
    adapters.push_back({.name = device->name(),
                        .numa_node = node_->api.cards().NumaNode(card),
                        .port_folder = "/sys/class/infiniband/" + card + "/ports/" + std::to_string(device->port()),
                        .fast_engine = FastEngineName(*node_, *device),
                        .fast_engine_reason = device->engines().kernel_reason,
                        .info = device->info()});
  }
  return adapters;
}

absl::StatusOr<std::unique_ptr<DeviceAdapter>> VerbsProvider::OpenAdapter(std::string_view adapter_name) {
  for (const std::shared_ptr<VerbsDevice>& device : cards_->ports()) {
    if (device->name() == adapter_name) {
      RNICD_ASSIGN_OR_RETURN(std::shared_ptr<VerbsContext> context,
                             VerbsContext::Open(node_, device, /*events=*/false));
      return std::make_unique<VerbsAdapter>(channel_, std::move(context));
    }
  }
  return MakeError(ErrorReason::ADAPTER_NOT_FOUND, "adapter_name");
}

uint64_t VerbsProvider::live_regions() const { return node_->counts.regions.load(std::memory_order_relaxed); }

FastRegistrationCounts VerbsProvider::fast_registrations() const {
  const auto count = [this](FastEngineUsed engine) {
    return node_->counts.fast_registrations[static_cast<size_t>(engine)].load(std::memory_order_relaxed);
  };
  return {.kernel = count(FastEngineUsed::kKernel),
          .direct = count(FastEngineUsed::kDirect),
          .composed = count(FastEngineUsed::kComposed),
          .windowed = count(FastEngineUsed::kWindowed)};
}

}  // namespace rnicd::provider
