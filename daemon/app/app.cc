#include "daemon/app/app.h"

#include <array>
#include <atomic>
#include <chrono>
#include <string_view>
#include <utility>

#include "absl/strings/strip.h"
#include "base/mutex.h"
#include "base/status.h"
#include "base/system/abandonable_thread.h"
#include "base/system/heap.h"
#include "base/system/os.h"
#include "daemon/app/config/provider_registry.h"
#include "daemon/app/generation/succession.h"
#include "daemon/app/host/page_size.h"
#include "daemon/app/host/process_host.h"
#include "daemon/app/host/raised_limits.h"
#include "daemon/app/host/system_door.h"
#include "daemon/app/observing/card_events.h"
#include "daemon/app/observing/observers.h"
#include "daemon/app/observing/page_server.h"
#include "daemon/app/observing/pages.h"
#include "daemon/app/observing/serving_parts.h"
#include "daemon/audit/audit_log.h"
#include "daemon/core/memory/ticket_table.h"
#include "daemon/core/request/address_book.h"
#include "daemon/core/request/alarms.h"
#include "daemon/core/request/node.h"
#include "daemon/core/request/operations.h"
#include "daemon/core/request/worker_pool.h"
#include "daemon/core/session/session_registry.h"
#include "daemon/core/tenant/tenant_directory.h"
#include "daemon/door/bulkhead.h"
#include "daemon/gate/method_table.h"
#include "daemon/health/prober.h"
#include "daemon/metrics/metrics.h"
#include "daemon/policy/default_policy.h"
#include "daemon/policy/policy_file.h"
#include "daemon/rings/ring_threads.h"
#include "daemon/server/rpc_connection_server.h"
#include "daemon/service/methods.h"

namespace rnicd::app {
namespace {

// Two, so that one large session does not hold up the others that are being taken back.
constexpr uint32_t kReaperThreads = 2;
// Its jobs are a few system calls each.
constexpr uint32_t kFdWorkerThreads = 1;
// Shorter than ServingCheck::kDeadline, because the operators' loop waits for it.
constexpr std::chrono::seconds kPolicyTime{3};

constexpr auto MethodNames() {
  std::array<std::string_view, core::kOperations.size()> names;
  for (size_t index = 0; index < names.size(); ++index) {
    names[index] = core::kOperations[index].name;
  }
  return names;
}
constexpr std::array kMethodNames = MethodNames();

}  // namespace

// What hears of all that happens.
struct App::Observing {
  Observing(const log::Logger& logger, core::Alarms& alarms, size_t most_tenants)
      : metrics(kMethodNames, RNICD_VERSION),
        inherited(most_tenants,
                  [&logger](const absl::Status& refused) {
                    logger.Warning("counters of another generation are left out",
                                   {{"because", std::string(refused.message())}});
                  }),
        session_log(logger),
        heap_trim(alarms, ReturnFreedMemory),
        cards(logger, metrics) {}

  metrics::Metrics metrics;
  metrics::InheritedCounters inherited;
  // Null without an audit log.
  std::unique_ptr<audit::AuditLog> audit;
  SessionLog session_log;
  HeapTrim heap_trim;
  // Null without a status page.
  std::unique_ptr<PageMemory> page_memory;
  std::optional<Observers> all;
  CardEvents cards;
};

// The parts of a Node, and those that use it. Threads end first, then what they use.
struct App::Core {
  std::atomic<bool> draining{false};
  Mutex drain_mutex;
  // Once true, draining stays true.
  bool stopping RNICD_GUARDED_BY(drain_mutex) = false;

  std::unique_ptr<FileWatch> file_watch;
  std::optional<core::LingeringMemory> lingering;
  std::optional<core::TicketTable> tickets;
  std::optional<core::Alarms> alarms;
  std::optional<core::AddressBook> addresses;
  std::optional<core::TenantDirectory> tenants;
  // Null without rings.
  std::unique_ptr<rings::RingThreads> rings;
  // Empty where no memory is kept ready.
  std::optional<core::MemoryPool> pool;
  std::optional<core::Node> node;
  std::optional<core::SessionRegistry> registry;
  std::optional<core::WorkerPool> workers;
  std::optional<core::WorkerPool> populators;
  std::optional<core::WorkerPool> fd_workers;
  std::optional<core::WorkerPool> reapers;
  // Only from when an older generation has given up its pool.
  std::optional<core::PoolRefiller> pool_refiller;
};

struct App::Front {
  explicit Front(const Clock& clock) : bulkhead(clock) {}

  // Where what clients may block is done. Sockets of both of the next two are closed there.
  door::Bulkhead bulkhead;
  std::unique_ptr<server::RpcConnectionServer> server;
  std::unique_ptr<SystemDoor> door;
};

App::App(Config config, ProcessHost& host) : config_(std::move(config)), host_(host), logger_(config_.log) {}

// A start that failed ends here.
App::~App() {
  if (succession_ != nullptr) {
    succession_->Stop();
  }
  if (observing_ != nullptr) {
    observing_->cards.EndFollowing();
  }
}

absl::Status App::Start(const log::Field& confinement) {
  Step(1, "check that every method has its row");
  RNICD_RETURN_IF_ERROR(gate::CheckMethodTable());

  Step(2, "read the policy");
  RNICD_ASSIGN_OR_RETURN(core::Policy policy, ReadPolicy());

  Step(3, "set up metrics and the audit log");
  RNICD_RETURN_IF_ERROR(StartObservers());

  if (const std::optional<std::string> warning = WarnOfKernelPages(SystemOs().page_bytes()); warning.has_value()) {
    logger_.Warning("kernel pages", {{"because", *warning}});
  }
  Step(4, "open the provider");
  RNICD_RETURN_IF_ERROR(StartProvider());

  Step(5, "start the workers and the core");
  RNICD_RETURN_IF_ERROR(StartCore(std::move(policy)));

  Step(6, "try the adapters");
  StartProbes();

  // Behind everything that takes long: from here on nobody is accepted until the door opens.
  Step(7, "claim the front door's names, or take over from an older generation");
  succession_ = MakeSuccession(config_, clock_);
  pages_ = std::make_unique<PageServer>(config_.metrics_address, [this] { return PartsOfPages(); });
  RNICD_ASSIGN_OR_RETURN(DoorNames * names, succession_->TakeNames(config_, {.node = *core_->node,
                                                                             .registry = *core_->registry,
                                                                             .logger = logger_,
                                                                             .version = version(),
                                                                             .callbacks = OnSuccession()}));

  Step(8, "build the front door");
  RNICD_RETURN_IF_ERROR(BuildFrontDoor(*names));

  Step(9, "serve the pages");
  RNICD_RETURN_IF_ERROR(pages_->Start());

  Step(10, "open the front door");
  RNICD_RETURN_IF_ERROR(succession_->Commit());
  RNICD_RETURN_IF_ERROR(front_->door->Start());
  RNICD_RETURN_IF_ERROR(succession_->Offer(*front_->door));
  if (core_->pool.has_value()) {
    core_->pool_refiller.emplace(*core_->pool, config_.refill);
  }

  Step(11, "give up what only the start needs");
  RNICD_RETURN_IF_ERROR(host_.ConfineServing(config_));
  // Behind everything that can fail: only Stop ends its thread before the parts.
  StartServingCheck();
  logger_.Info("ready", {{"version", version()},
                         {"generation", generation()},
                         {"provider", config_.provider},
                         {"workloads", names->workloads()},
                         {"operators", names->operators()},
                         {"metrics_address", metrics_address()},
                         confinement});
  return absl::OkStatus();
}

SuccessionCallbacks App::OnSuccession() {
  return {.lend_pages = [this] { return pages_->Lend(); },
          .on_pages =
              [this](UniqueSocket listener, const std::string& address) {
                if (address == config_.metrics_address) {
                  pages_->Inherit(std::move(listener));
                }
              },
          .page_address = config_.metrics_address,
          .on_taken_back =
              [this](const std::string& its_counters) {
                observing_->inherited.Keep(its_counters);
                if (const absl::Status served = pages_->TakeBack(); !served.ok()) {
                  logger_.Error("the pages are not served", {{"error", std::string(served.message())}});
                }
                // It may have been asked to stop meanwhile.
                host_.End();
              },
          .on_over = [this] { host_.End(); },
          .counters = [this] { return CountersText(PartsOfPages()); },
          .own_counters =
              [this] {
                PageParts parts = PartsOfPages();
                parts.inherited = nullptr;
                return CountersText(parts);
              },
          .on_counters = [this](const std::string& text) { observing_->inherited.Set(text); }};
}

absl::Status App::StartObservers() {
  core_ = std::make_unique<Core>();
  core_->alarms.emplace(clock_).Start();
  observing_ = std::make_unique<Observing>(logger_, *core_->alarms, config_.metrics_max_tenants);
  std::vector<core::Observer*> observers = {&observing_->metrics, &observing_->session_log, &observing_->heap_trim};
  if (!config_.audit_log.empty()) {
    RNICD_ASSIGN_OR_RETURN(
        observing_->audit,
        audit::AuditLog::Open({.path = config_.audit_log, .bytes_per_second = config_.audit_bytes_per_second}, clock_,
                              logger_));
    observers.push_back(observing_->audit.get());
  }
  if (config_.status_page && !config_.metrics_address.empty()) {
    observing_->page_memory = std::make_unique<PageMemory>();
    observers.push_back(&observing_->page_memory->failures);
    observers.push_back(&observing_->page_memory->history);
  }
  observing_->all.emplace(std::move(observers));
  return absl::OkStatus();
}

absl::Status App::StartProvider() {
  RNICD_ASSIGN_OR_RETURN(provider_, MakeProvider(config_, random_, [this](const provider::AdapterEvent& event) {
                           observing_->cards.OnEvent(event);
                         }));
  for (const provider::AdapterDescription& adapter : provider_->ListAdapters()) {
    LogEngine(logger_, adapter);
  }
  return absl::OkStatus();
}

absl::Status App::StartCore(core::Policy policy) {
  Core& parts = *core_;
  RNICD_ASSIGN_OR_RETURN(parts.file_watch, NewFileWatch());
  parts.lingering.emplace(*parts.file_watch);
  // One more than an owner may use.
  parts.workers.emplace(config_.worker_threads + 1);
  parts.populators.emplace(config_.worker_threads + 1, core::ThreadPriority::kBackground);
  parts.fd_workers.emplace(kFdWorkerThreads);
  parts.reapers.emplace(kReaperThreads);
  front_ = std::make_unique<Front>(clock_);
  parts.tickets.emplace(random_, clock_, config_.ticket_lifetime);
  parts.addresses.emplace(random_);
  const auto ledger = std::make_shared<core::Ledger>(config_.limits.node, nullptr);
  parts.tenants.emplace(std::move(policy), ledger, random_, clock_, config_.metrics_max_tenants);
  if (!config_.memory_pool.empty()) {
    parts.pool.emplace(SystemOs(), ledger, config_.memory_pool);
  }
  if (config_.ring_threads != 0) {
    RNICD_ASSIGN_OR_RETURN(parts.rings, rings::RingThreads::Start(config_.ring_threads, clock_, config_.ring_spin));
  }
  parts.node.emplace(
      core::Node{.os = SystemOs(),
                 .clock = clock_,
                 .random = random_,
                 .provider = *provider_,
                 .observer = *observing_->all,
                 .workers = *parts.workers,
                 .populators = *parts.populators,
                 .fd_workers = *parts.fd_workers,
                 .reapers = *parts.reapers,
                 .blocking = front_->bulkhead,
                 .alarms = *parts.alarms,
                 .tickets = *parts.tickets,
                 .lingering = *parts.lingering,
                 .tenants = *parts.tenants,
                 .addresses = *parts.addresses,
                 .draining = parts.draining,
                 .limits = config_.limits,
                 .ledger = ledger,
                 .started = clock_.Now(),
                 .rings = parts.rings.get(),
                 .pool = parts.pool.has_value() ? &*parts.pool : nullptr,
                 .populating_threads = config_.worker_threads,
                 .registering_threads = provider_->registers_in_parallel() ? config_.worker_threads : 1});
  parts.registry.emplace(*parts.node);
  return absl::OkStatus();
}

PageParts App::PartsOfPages() {
  return {.node = *core_->node,
          .registry = *core_->registry,
          .metrics = observing_->metrics,
          .prober = *prober_,
          .serving = serving_,
          .audit = observing_->audit.get(),
          .log = logger_,
          .memory = observing_->page_memory.get(),
          .version = version(),
          .policy_file = config_.policy_file,
          .connections = [this] { return front_->door->connections(); },
          .inherited = &observing_->inherited,
          .older_generations = [this] { return succession_->older(); }};
}

bool App::Stop() {
  Step(10, "close the front door");
  serving_.Stop();
  succession_->Stop();
  front_->door->StopAccepting();
  {
    MutexLock lock(core_->drain_mutex);
    core_->stopping = true;
    core_->draining.store(true);
  }
  if (!EndSessionsAndProbes()) {
    // Nothing is destroyed on this way out, so this must wait for the threads that write lines.
    if (observing_->audit != nullptr) {
      observing_->audit->FlushUntil(clock_.Now() + log::kLastLines);
    }
    logger_.FlushUntil(clock_.Now() + log::kLastLines);
    return false;
  }
  front_->door->Stop();

  Step(9, "end the pages");
  pages_->Stop();
  pages_.reset();

  Step(8, "take the front door down");
  front_.reset();

  Step(7, "leave the front door's names");
  succession_.reset();

  Step(6, "end the probes");
  observing_->cards.EndFollowing();
  prober_.reset();

  Step(5, "end the workers and the core");
  core_.reset();

  Step(4, "close the provider");
  provider_.reset();

  Step(3, "end metrics and the audit log");
  observing_.reset();
  logger_.Info("stopped");
  return true;
}

// A card that hangs blocks sessions and probes alike, and no call into it can be cancelled.
bool App::EndSessionsAndProbes() {
  const Instant limit = clock_.Now() + config_.drain_timeout;
  core_->registry->Drain(core::EndCause::kDaemonStopping);
  if (!core_->registry->WaitUntilEmpty(limit)) {
    logger_.Error("sessions were not taken back in time", {{"sessions", core_->registry->List().size()}});
    return false;
  }
  if (!prober_->Stop(limit)) {
    logger_.Error("a probe did not come back in time");
    return false;
  }
  return true;
}

// Before the front door, so that the daemon cannot be queried for its health before it is known.
void App::StartProbes() {
  prober_ = health::Prober::Start(*provider_, SystemOs(), clock_,
                                  {.interval = config_.health_interval,
                                   .timeout = config_.health_timeout,
                                   .on_change = [this](const health::AdapterHealth& adapter, bool ready) {
                                     LogHealth(logger_, adapter);
                                     health_.SetCards(ready);
                                   }});
  observing_->cards.BeginFollowing(
      {.registry = *core_->registry, .prober = *prober_, .provider = *provider_, .executor = *core_->reapers});
}

absl::Status App::BuildFrontDoor(DoorNames& names) {
  RaiseLimits(config_, host_, logger_);
  const gate::GateServices services = {.observer = *observing_->all, .logger = logger_, .clock = clock_};
  RNICD_ASSIGN_OR_RETURN(front_->server, server::RpcConnectionServer::Start(
                                             config_.rpc_threads, rpc::Limits{}, services,
                                             service::AllMethods(*core_->node, *core_->registry, *this, health_),
                                             *core_->node, *core_->registry));
  front_->door = names.MakeDoor(config_, {.node = *core_->node,
                                          .registry = *core_->registry,
                                          .logger = logger_,
                                          .bulkhead = front_->bulkhead,
                                          .server = *front_->server});
  return absl::OkStatus();
}

// The log comes last: the others must learn that it hangs.
void App::StartServingCheck() {
  serving_.SetParts(ServingParts({.door = *front_->door,
                                  .workloads = front_->server->workloads(),
                                  .operators = front_->server->operators(),
                                  .fd_workers = *core_->fd_workers,
                                  .alarms = *core_->alarms,
                                  .rings = core_->rings.get()}),
                    [this](const health::ServingVerdict& verdict, bool changed) {
                      host_.OnChecked(verdict, changed);
                      if (!changed) {
                        return;
                      }
                      health_.NotifyAll();
                      if (verdict.serves()) {
                        logger_.Info("serves again");
                      } else {
                        logger_.Error("does not serve",
                                      {{"because", std::string(absl::StripSuffix(verdict.Text(), "\n"))}});
                      }
                    });
  serving_.Start();
}

void App::Step(int number, const char* what) const { logger_.Debug("step", {{"number", number}, {"what", what}}); }

// A disk that hangs must hold up neither the operators' loop nor the thread that waits for the order to stop.
absl::StatusOr<core::Policy> App::ReadPolicy() const {
  if (config_.policy_file.empty()) {
    return policy::DefaultPolicy();
  }
  auto policy = ResultBy<absl::StatusOr<core::Policy>>(
      clock_.Now() + kPolicyTime, [path = config_.policy_file] { return policy::LoadPolicy(path); });
  return policy.has_value() ? *std::move(policy)
                            : absl::DeadlineExceededError(config_.policy_file + ": could not be read in time");
}

absl::Status App::ReloadPolicy() {
  if (config_.policy_file.empty()) {
    logger_.Warning("there is no policy file to read", {});
    return MakeErrorWithDetail(ErrorReason::POLICY_REFUSED, "the daemon runs without --policy_file");
  }
  host_.OnReloading();
  absl::StatusOr<core::Policy> policy = ReadPolicy();
  absl::Status outcome;
  if (policy.ok()) {
    core_->tenants->SetPolicy(*std::move(policy));
    logger_.Info("policy in force", {{"file", config_.policy_file}});
  } else {
    logger_.Error("policy refused; the one in force stays", {{"error", std::string(policy.status().message())}});
    core_->tenants->SetPolicyError(std::string(policy.status().message()));
    outcome = MakeErrorWithDetail(ErrorReason::POLICY_REFUSED, std::string(policy.status().message()));
  }
  observing_->all->Report(core::Decision{.what = "policy.reload", .status = outcome, .note = config_.policy_file});
  host_.OnReloaded();
  return outcome;
}

bool App::SetDraining(bool draining) {
  MutexLock lock(core_->drain_mutex);
  core_->draining.store(draining || core_->stopping);
  return core_->draining.load();
}

absl::StatusOr<std::string> App::SetLogLevel(std::string_view level) {
  const std::optional<log::Level> known = log::LevelFromName(level);
  if (!known.has_value()) {
    return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, "level");
  }
  const log::Level previous = logger_.level();
  logger_.SetLevel(*known);
  logger_.Info("log level", {{"level", level}, {"previous", log::LevelName(previous)}});
  return std::string(log::LevelName(previous));
}

std::string App::version() const { return RNICD_VERSION; }
uint32_t App::generation() const { return succession_->generation(); }
bool App::retired() const { return succession_->retired(); }
std::string App::metrics_address() const { return pages_->address(); }
void App::OnGrantNarrowed(GrantId grant, const std::string& pod_uid) { succession_->NarrowGrant(grant, pod_uid); }

core::Doors* App::doors() const { return front_->door->doors(); }
uint64_t App::connections() const { return front_->door->connections(); }

uint64_t App::device_regions() const { return prober_->RegionsOfOthers(); }

std::vector<health::AdapterHealth> App::adapters() const { return prober_->Read(); }

}  // namespace rnicd::app
