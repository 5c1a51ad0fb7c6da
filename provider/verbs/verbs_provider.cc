#include "provider/verbs/verbs_provider.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "provider/engine/engine_queue_pair.h"
#include "provider/verbs/card/verbs_context.h"
#include "provider/verbs/card/verbs_device.h"
#include "provider/verbs/card/verbs_status.h"
#include "provider/verbs/connection/card_connections.h"
#include "provider/verbs/fast/kernel_fast_region.h"
#include "provider/verbs/fast/verbs_fast_region.h"
#include "provider/verbs/fast/verbs_window.h"
#include "provider/verbs/kernel_probe.h"
#include "provider/verbs/memory/verbs_memory_region.h"
#include "provider/verbs/queue/verbs_endpoint.h"
#include "provider/verbs/window_probe.h"

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
    return std::make_shared<VerbsWindow>(domain_);
  }
  absl::StatusOr<std::unique_ptr<DeviceQueuePair>> CreateQueuePair(const QueuePairLimits& limits,
                                                                   DeviceCompletionQueue& /*receive_queue*/,
                                                                   DeviceCompletionQueue& /*initiator_queue*/,
                                                                   QueuePairListener& listener) override {
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
  absl::StatusOr<std::unique_ptr<DeviceProtectionDomain>> CreateProtectionDomain() override {
    RNICD_ASSIGN_OR_RETURN(std::shared_ptr<VerbsDomain> domain, VerbsDomain::Create(context_));
    return std::make_unique<VerbsProtectionDomain>(std::move(domain));
  }
  absl::StatusOr<std::unique_ptr<DeviceCompletionQueue>> CreateCompletionQueue(uint32_t /*depth*/) override {
    if (context_->device().removed()) {
      return MakeError(ErrorReason::DEVICE_REMOVED);
    }
    return std::make_unique<VerbsCompletionQueue>();
  }
  std::unique_ptr<DeviceMapping> AddMapping(std::span<const std::span<std::byte>> runs) override {
    return context_->device().engines().kernel ? context_->pinned_pages().Add(runs) : nullptr;
  }
  std::vector<IpAddress> addresses() const override { return connections_.addresses(); }
  absl::StatusOr<std::unique_ptr<DeviceListener>> Listen(const NetworkAddress& address,
                                                         std::weak_ptr<RequestListener> listener) override {
    return connections_.Listen(address, std::move(listener));
  }
  absl::StatusOr<std::unique_ptr<DeviceConnector>> CreateConnector(std::weak_ptr<ConnectorListener> listener) override {
    return connections_.CreateConnector(std::move(listener));
  }
  absl::StatusOr<IpAddress> LocateQueuePair(std::string_view peer_address) const override {
    return connections_.LocateQueuePair(peer_address);
  }

 private:
  const std::shared_ptr<VerbsContext> context_;
  const CardConnections connections_;
};

std::string Because(const std::string& card, const std::string& why) { return card + ": " + why; }
std::string Because(const std::string& card, const absl::Status& why) {
  return Because(card, std::string(why.message()));
}

uint32_t NonZero(uint64_t number) { return std::max(static_cast<uint32_t>(number), 1U); }

}  // namespace

absl::StatusOr<std::unique_ptr<VerbsProvider>> VerbsProvider::Create(const VerbsOptions& options, RandomSource& random,
                                                                     VerbsApi& api, AdapterEventListener on_event,
                                                                     RdmaCm* cm) {
  // NOLINTNEXTLINE(modernize-make-shared): a struct with a mutex cannot be moved into place.
  auto node = std::shared_ptr<VerbsNode>(new VerbsNode{.api = api,
                                                       .options = options,
                                                       .on_event = std::move(on_event),
                                                       .random = random,
                                                       .origin = NonZero(random.Next())});
  std::unique_ptr<VerbsProvider> provider(new VerbsProvider(std::move(node)));
  std::vector<std::string> remarks;
  RNICD_RETURN_IF_ERROR(provider->AddCards(remarks));
  if (cm != nullptr && !provider->ports_.empty()) {
    provider->OpenChannel(*cm, remarks);
  }
  if (provider->ports_.empty()) {
    return absl::NotFoundError(absl::StrCat("no RDMA card can be used: ",
                                            remarks.empty() ? "none is there; see that its driver is loaded (ls "
                                                              "/sys/class/infiniband) and /dev/infiniband is visible"
                                                            : absl::StrJoin(remarks, "; ")));
  }
  for (const std::string& remark : remarks) {
    provider->node_->on_event({.adapter = remark, .kind = AdapterEventKind::kLeftOut});
  }
  return provider;
}

// Stops the callbacks of cards that are about to be closed.
VerbsProvider::~VerbsProvider() {
  if (channel_ != nullptr) {
    channel_->Stop();
  }
  node_->loop.Stop();
}

void VerbsProvider::OpenChannel(RdmaCm& cm, std::vector<std::string>& remarks) {
  absl::StatusOr<std::shared_ptr<CmChannel>> channel = CmChannel::Open(cm);
  if (channel.ok()) {
    channel_ = *std::move(channel);
    FindAddresses(cm);
  } else {
    remarks.push_back(Because("rdma_cm (connections by address)", channel.status()));
  }
}

void VerbsProvider::FindAddresses(RdmaCm& cm) {
  for (const Port& port : ports_) {
    const std::vector<GidEntry> table = node_->api.QueryGids(port.monitor->raw(), port.device->port());
    if (port.device->iwarp() != nullptr && !table.empty()) {
      port.device->iwarp()->addresses = cm.AddressesOf(table.front().gid);
    }
  }
}

absl::Status VerbsProvider::AddCards(std::vector<std::string>& remarks) {
  const std::vector<std::string> cards = node_->api.DeviceNames();
  const std::vector<std::string>& wanted = node_->options.devices;
  const auto is_in = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (const std::string& card : wanted.empty() ? cards : wanted) {
    if (is_in(cards, card)) {
      RNICD_RETURN_IF_ERROR(AddPorts(card, remarks));
    } else {
      remarks.push_back(Because(card, "not there"));
    }
  }
  for (const std::string& card : cards) {
    if (!wanted.empty() && !is_in(wanted, card)) {
      remarks.push_back(Because(card, "not in --verbs_devices"));
    }
  }
  return absl::OkStatus();
}

absl::Status VerbsProvider::AddPorts(const std::string& card, std::vector<std::string>& remarks) {
  VerbsApi& api = node_->api;
  ibv_context* const context = api.Open(card);
  ibv_device_attr attributes = {};
  const int error = context == nullptr ? errno : api.QueryDevice(context, attributes);
  if (error != 0) {
    remarks.push_back(Because(card, VerbStatus(error, "ibv_open_device")));
  }
  std::vector<std::shared_ptr<VerbsDevice>> devices;
  for (uint8_t port = 1; error == 0 && port <= attributes.phys_port_cnt; ++port) {
    const std::string name = attributes.phys_port_cnt == 1 ? card : absl::StrCat(card, ":", port);
    absl::StatusOr<std::shared_ptr<VerbsDevice>> device = VerbsDevice::Inspect(*node_, context, card, port, name);
    if (device.ok()) {
      devices.push_back(*std::move(device));
    } else {
      remarks.push_back(Because(name, device.status()));
    }
  }
  if (context != nullptr) {
    api.Close(context);
  }
  for (const std::shared_ptr<VerbsDevice>& device : devices) {
    absl::StatusOr<std::shared_ptr<VerbsContext>> monitor = VerbsContext::Open(node_, device, /*events=*/true);
    if (!monitor.ok()) {
      remarks.push_back(Because(device->name(), monitor.status()));
      continue;
    }
    const Port port{.device = device, .monitor = *std::move(monitor)};
    RNICD_RETURN_IF_ERROR(ChooseWindows(port));
    RNICD_RETURN_IF_ERROR(ChooseKernel(port));
    ports_.push_back(port);
  }
  return absl::OkStatus();
}

absl::Status VerbsProvider::ChooseWindows(const Port& port) const {
  const VerbsOptions& options = node_->options;
  if (options.fast_engine == FastEngine::kRegistration) {
    return absl::OkStatus();
  }
  const WindowSupport support = ProbeWindows(*port.monitor);
  const bool accepted = support == WindowSupport::kBounded ||
                        (support == WindowSupport::kUnbounded && options.fast_engine == FastEngine::kWindow &&
                         options.allow_unbounded_windows);
  if (accepted) {
    port.device->engines().windows = true;
  } else if (options.fast_engine == FastEngine::kWindow) {
    return MakeErrorWithDetail(
        ErrorReason::DEVICE_NOT_CAPABLE,
        Because(port.device->name(), support == WindowSupport::kUnbounded ? "its memory windows do not check bounds"
                                                                          : "its memory windows do not work"));
  }
  return absl::OkStatus();
}

absl::Status VerbsProvider::ChooseKernel(const Port& port) const {
  const VerbsOptions& options = node_->options;
  if (options.fast_engine != FastEngine::kAuto && options.fast_engine != FastEngine::kKernel) {
    port.device->engines().kernel_reason = "--verbs_fast_engine";
    return absl::OkStatus();
  }
  const std::string problem =
      options.fast_module == nullptr ? options.no_fast_module : ProbeKernel(*port.monitor).value_or("");
  if (problem.empty()) {
    port.device->engines().kernel = true;
  } else if (options.fast_engine == FastEngine::kKernel) {
    return MakeErrorWithDetail(ErrorReason::DEVICE_NOT_CAPABLE, Because(port.device->name(), problem));
  }
  port.device->engines().kernel_reason = problem.empty() ? "the probe of the kernel module passed" : problem;
  return absl::OkStatus();
}

std::string VerbsProvider::EngineOf(const VerbsDevice& device) const {
  const bool over_windows = device.engines().windows && node_->options.fast_engine == FastEngine::kWindow;
  return device.engines().kernel ? "kernel" : over_windows ? "window" : "registration";
}

std::vector<AdapterDescription> VerbsProvider::ListAdapters() const {
  std::vector<AdapterDescription> adapters;
  adapters.reserve(ports_.size());
  for (const Port& port : ports_) {
    if (!port.device->removed()) {
      adapters.push_back({.name = port.device->name(),
                          .numa_node = node_->api.NumaNode(port.device->card()),
                          .port_folder = "/sys/class/infiniband/" + port.device->card() + "/ports/" +
                                         std::to_string(port.device->port()),
                          .fast_engine = EngineOf(*port.device),
                          .fast_engine_reason = port.device->engines().kernel_reason,
                          .info = port.device->info()});
    }
  }
  return adapters;
}

absl::StatusOr<std::unique_ptr<DeviceAdapter>> VerbsProvider::OpenAdapter(std::string_view adapter_name) {
  const auto port =
      std::find_if(ports_.begin(), ports_.end(), [&](const Port& each) { return each.device->name() == adapter_name; });
  if (port == ports_.end()) {
    return MakeError(ErrorReason::ADAPTER_NOT_FOUND, "adapter_name");
  }
  RNICD_ASSIGN_OR_RETURN(std::shared_ptr<VerbsContext> context,
                         VerbsContext::Open(node_, port->device, /*events=*/false));
  return std::make_unique<VerbsAdapter>(channel_, std::move(context));
}

uint64_t VerbsProvider::live_regions() const {
  uint64_t regions = 0;
  for (const Port& port : ports_) {
    regions += port.device->regions();
  }
  return regions;
}

FastRegistrationCounts VerbsProvider::fast_registrations() const {
  FastRegistrationCounts sum;
  for (const Port& port : ports_) {
    const FastRegistrationCounts counts = port.device->fast_registrations();
    sum.kernel += counts.kernel;
    sum.direct += counts.direct;
    sum.composed += counts.composed;
    sum.windowed += counts.windowed;
  }
  return sum;
}

}  // namespace rnicd::provider
