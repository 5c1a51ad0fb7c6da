#include "daemon/app/app.h"

#include <array>
#include <chrono>
#include <string_view>
#include <utility>

#include "absl/strings/strip.h"
#include "base/abandonable_thread.h"
#include "base/heap.h"
#include "base/os.h"
#include "base/status.h"
#include "daemon/app/heap_trim.h"
#include "daemon/app/observers.h"
#include "daemon/app/page_size.h"
#include "daemon/app/pages.h"
#include "daemon/app/process_host.h"
#include "daemon/app/provider_registry.h"
#include "daemon/app/serving_parts.h"
#include "daemon/app/system_door.h"
#include "daemon/audit/audit_log.h"
#include "daemon/core/memory/ticket_table.h"
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
// A connection takes its socket and its process; the rest is for everything else.
constexpr uint64_t kDescriptorsPerConnection = 2;
constexpr uint64_t kOtherDescriptors = 128;

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

// An event that takes a card out of use is a warning; its arrival, or a new address, is information.
bool IsWarning(provider::AdapterEventKind kind) {
  switch (kind) {
    case provider::AdapterEventKind::kPortUp:
    case provider::AdapterEventKind::kAddressChanged:
      return false;
    case provider::AdapterEventKind::kPortDown:
    case provider::AdapterEventKind::kRemoved:
    case provider::AdapterEventKind::kLeftOut:
      return true;
  }
  return true;
}

void LogHealth(const log::Logger& logger, const health::AdapterHealth& adapter) {
  if (adapter.healthy) {
    logger.Info("adapter healthy", {{"adapter", adapter.adapter}});
  } else {
    logger.Warning("adapter unhealthy",
                   {{"adapter", adapter.adapter}, {"error", std::string(adapter.status.message())}});
  }
}

}  // namespace

App::App(Config config, ProcessHost& host) : config_(std::move(config)), host_(host), logger_(config_.log) {}

App::~App() = default;

absl::Status App::Start(const log::Field& confinement) {
  Step(1, "check that every method has its row");
  RNICD_RETURN_IF_ERROR(gate::CheckMethodTable());

  Step(2, "read the policy");
  RNICD_ASSIGN_OR_RETURN(core::Policy policy, ReadPolicy());

  Step(3, "claim the front door's names");
  RNICD_ASSIGN_OR_RETURN(names_, ClaimDoorNames(config_));

  Step(4, "set up metrics and the audit log");
  RNICD_RETURN_IF_ERROR(StartObservers());

  if (const std::optional<std::string> warning = WarnOfKernelPages(SystemOs().page_bytes()); warning.has_value()) {
    logger_.Warning("kernel pages", {{"because", *warning}});
  }
  Step(5, "open the provider");
  RNICD_RETURN_IF_ERROR(StartProvider());

  Step(6, "start the workers and the core");
  RNICD_RETURN_IF_ERROR(StartCore(std::move(policy)));

  Step(7, "try the adapters");
  StartProbes();

  Step(8, "build the front door");
  RNICD_RETURN_IF_ERROR(BuildFrontDoor());

  Step(9, "serve the pages");
  RNICD_RETURN_IF_ERROR(StartPages());

  Step(10, "open the front door");
  RNICD_RETURN_IF_ERROR(front_door_->Start());

  Step(11, "give up what only the start needs");
  RNICD_RETURN_IF_ERROR(host_.ConfineServing(config_));
  // Behind everything that can fail: only Stop ends its thread before the parts.
  StartServingCheck();
  logger_.Info("ready", {{"version", version()},
                         {"provider", config_.provider},
                         {"workloads", names_->workloads()},
                         {"operators", names_->operators()},
                         {"metrics_address", metrics_address()},
                         confinement});
  return absl::OkStatus();
}

absl::Status App::StartObservers() {
  metrics_ = std::make_unique<metrics::Metrics>(kMethodNames, version());
  alarms_ = std::make_unique<core::Alarms>(clock_);
  alarms_->Start();
  heap_trim_ = std::make_unique<HeapTrim>(*alarms_, ReturnFreedMemory);
  std::vector<core::Observer*> observers = {metrics_.get(), &session_log_, heap_trim_.get()};
  if (!config_.audit_log.empty()) {
    RNICD_ASSIGN_OR_RETURN(
        audit_, audit::AuditLog::Open({.path = config_.audit_log, .bytes_per_second = config_.audit_bytes_per_second},
                                      clock_, logger_));
    observers.push_back(audit_.get());
  }
  if (config_.status_page && !config_.metrics_address.empty()) {
    page_memory_ = std::make_unique<PageMemory>();
    observers.push_back(&page_memory_->failures);
    observers.push_back(&page_memory_->history);
  }
  observer_ = std::make_unique<Observers>(std::move(observers));
  return absl::OkStatus();
}

absl::Status App::StartProvider() {
  RNICD_ASSIGN_OR_RETURN(provider_, MakeProvider(config_, random_, [this](const provider::AdapterEvent& event) {
                           OnAdapterEvent(event);
                         }));
  for (const provider::AdapterDescription& adapter : provider_->ListAdapters()) {
    if (!adapter.fast_engine.empty()) {
      logger_.Info(
          "fast registrations",
          {{"adapter", adapter.name}, {"engine", adapter.fast_engine}, {"because", adapter.fast_engine_reason}});
    }
  }
  return absl::OkStatus();
}

absl::Status App::StartCore(core::Policy policy) {
  RNICD_ASSIGN_OR_RETURN(file_watch_, NewFileWatch());
  lingering_ = std::make_unique<core::LingeringMemory>(*file_watch_);
  // One more than an owner may use.
  workers_ = std::make_unique<core::WorkerPool>(config_.worker_threads + 1);
  populators_ = std::make_unique<core::WorkerPool>(config_.worker_threads + 1, core::ThreadPriority::kBackground);
  fd_workers_ = std::make_unique<core::WorkerPool>(kFdWorkerThreads);
  reapers_ = std::make_unique<core::WorkerPool>(kReaperThreads);
  bulkhead_ = std::make_unique<door::Bulkhead>(clock_);
  tickets_ = std::make_unique<core::TicketTable>(random_, clock_, config_.ticket_lifetime);
  const auto ledger = std::make_shared<core::Ledger>(config_.limits.node, nullptr);
  tenants_ =
      std::make_unique<core::TenantDirectory>(std::move(policy), ledger, random_, clock_, config_.metrics_max_tenants);
  if (!config_.memory_pool.empty()) {
    pool_ = std::make_unique<core::MemoryPool>(SystemOs(), ledger, config_.memory_pool);
  }
  if (config_.ring_threads != 0) {
    RNICD_ASSIGN_OR_RETURN(rings_,
                           rings::RingThreads::Start(config_.ring_threads, *observer_, clock_, config_.ring_spin));
  }
  node_ = std::make_unique<core::Node>(
      core::Node{.os = SystemOs(),
                 .clock = clock_,
                 .random = random_,
                 .provider = *provider_,
                 .observer = *observer_,
                 .workers = *workers_,
                 .populators = *populators_,
                 .fd_workers = *fd_workers_,
                 .reapers = *reapers_,
                 .blocking = *bulkhead_,
                 .alarms = *alarms_,
                 .tickets = *tickets_,
                 .lingering = *lingering_,
                 .tenants = *tenants_,
                 .draining = draining_,
                 .limits = config_.limits,
                 .ledger = ledger,
                 .started = clock_.Now(),
                 .rings = rings_.get(),
                 .pool = pool_.get(),
                 .populating_threads = config_.worker_threads,
                 .registering_threads = provider_->registers_in_parallel() ? config_.worker_threads : 1});
  registry_ = std::make_unique<core::SessionRegistry>(*node_);
  if (pool_ != nullptr) {
    pool_refiller_ = std::make_unique<core::PoolRefiller>(*pool_, config_.refill);
  }
  return absl::OkStatus();
}

absl::Status App::StartPages() {
  if (config_.metrics_address.empty()) {
    return absl::OkStatus();
  }
  RNICD_ASSIGN_OR_RETURN(
      pages_, Pages::Start(config_.metrics_address, {.node = *node_,
                                                     .registry = *registry_,
                                                     .metrics = *metrics_,
                                                     .prober = *prober_,
                                                     .serving = serving_,
                                                     .audit = audit_.get(),
                                                     .log = logger_,
                                                     .memory = page_memory_.get(),
                                                     .version = version(),
                                                     .policy_file = config_.policy_file,
                                                     .connections = [this] { return front_door_->connections(); }}));
  return absl::OkStatus();
}

void App::OnAdapterEvent(const provider::AdapterEvent& event) {
  const auto write = IsWarning(event.kind) ? &log::Logger::Warning : &log::Logger::Info;
  (logger_.*write)("adapter event", {{"adapter", event.adapter}, {"event", provider::AdapterEventName(event.kind)}});
  // A port that was left out is not an adapter, and has an explanation.
  if (event.kind != provider::AdapterEventKind::kLeftOut) {
    metrics_->OnAdapterEvent(event);
  }
}

bool App::Stop() {
  Step(10, "close the front door");
  serving_.Stop();
  front_door_->StopAccepting();
  {
    MutexLock lock(drain_mutex_);
    stopping_ = true;
    draining_.store(true);
  }
  if (!EndSessionsAndProbes()) {
    // Nothing is destroyed on this way out, so this must wait for the threads that write lines.
    if (audit_ != nullptr) {
      audit_->FlushUntil(clock_.Now() + log::kLastLines);
    }
    logger_.FlushUntil(clock_.Now() + log::kLastLines);
    return false;
  }
  front_door_->Stop();

  Step(9, "end the pages");
  pages_.reset();

  Step(8, "take the front door down");
  front_door_.reset();
  connection_server_.reset();
  bulkhead_.reset();

  Step(7, "end the probes");
  prober_.reset();

  Step(6, "end the workers and the core");
  pool_refiller_.reset();
  reapers_.reset();
  fd_workers_.reset();
  populators_.reset();
  workers_.reset();
  registry_.reset();
  node_.reset();
  pool_.reset();
  rings_.reset();
  tenants_.reset();
  alarms_.reset();
  tickets_.reset();
  lingering_.reset();
  file_watch_.reset();

  Step(5, "close the provider");
  provider_.reset();

  Step(4, "end metrics and the audit log");
  observer_.reset();
  heap_trim_.reset();
  page_memory_.reset();
  audit_.reset();
  metrics_.reset();

  Step(3, "leave the front door's names");
  names_.reset();
  logger_.Info("stopped");
  return true;
}

// A card that hangs blocks sessions and probes alike, and no call into it can be cancelled.
bool App::EndSessionsAndProbes() {
  const Instant limit = clock_.Now() + config_.drain_timeout;
  registry_->Drain(core::EndCause::kDaemonStopping);
  if (!registry_->WaitUntilEmpty(limit)) {
    logger_.Error("sessions were not taken back in time", {{"sessions", registry_->List().size()}});
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
}

absl::Status App::BuildFrontDoor() {
  RaiseLimits();
  const gate::GateServices services = {.observer = *observer_, .logger = logger_, .clock = clock_};
  RNICD_ASSIGN_OR_RETURN(
      connection_server_,
      server::RpcConnectionServer::Start(config_.rpc_threads, rpc::Limits{}, services,
                                         service::AllMethods(*node_, *registry_, *this, health_), *node_, *registry_));
  front_door_ = names_->MakeDoor(config_, {.node = *node_,
                                           .registry = *registry_,
                                           .logger = logger_,
                                           .bulkhead = *bulkhead_,
                                           .server = *connection_server_});
  return absl::OkStatus();
}

// The log comes last: the others must learn that it hangs.
void App::StartServingCheck() {
  serving_.SetParts(ServingParts({.door = *front_door_,
                                  .workloads = connection_server_->workloads(),
                                  .operators = connection_server_->operators(),
                                  .fd_workers = *fd_workers_,
                                  .alarms = *alarms_,
                                  .rings = rings_.get()}),
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

// Logs a warning where that is too low for all possible connections, and where memory may not be of any size.
void App::RaiseLimits() const {
  const uint64_t wanted = config_.connections.max * kDescriptorsPerConnection + kOtherDescriptors;
  if (const std::optional<uint64_t> limit = host_.RaiseDescriptorLimit(wanted); limit.has_value()) {
    logger_.Warning("the descriptor limit is below what max_connections may need",
                    {{"limit", *limit}, {"wanted", wanted}});
  }
  if (const std::optional<uint64_t> limit = host_.RaiseFileSizeLimit(); limit.has_value()) {
    logger_.Warning("the limit of file sizes also holds for each memory object", {{"limit", *limit}});
  }
}

void App::Step(int number, const char* what) const { logger_.Debug("step", {{"number", number}, {"what", what}}); }

// A disk that hangs must hold up neither the operators' loop nor the thread that waits for the order to stop.
absl::StatusOr<core::Policy> App::ReadPolicy() const {
  if (config_.policy_file.empty()) {
    return core::OneTenantForEachUid(config_.uid_limits);
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
    tenants_->SetPolicy(*std::move(policy));
    logger_.Info("policy in force", {{"file", config_.policy_file}});
  } else {
    logger_.Error("policy refused; the one in force stays", {{"error", std::string(policy.status().message())}});
    tenants_->SetPolicyError(std::string(policy.status().message()));
    outcome = MakeErrorWithDetail(ErrorReason::POLICY_REFUSED, std::string(policy.status().message()));
  }
  observer_->Report(core::Decision{.what = "policy.reload", .status = outcome, .note = config_.policy_file});
  host_.OnReloaded();
  return outcome;
}

bool App::SetDraining(bool draining) {
  MutexLock lock(drain_mutex_);
  draining_.store(draining || stopping_);
  return draining_.load();
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

std::string App::metrics_address() const { return pages_ != nullptr ? pages_->address() : ""; }

uint64_t App::connections() const { return front_door_->connections(); }

uint64_t App::device_regions() const { return prober_->RegionsOfOthers(); }

std::vector<health::AdapterHealth> App::adapters() const { return prober_->Read(); }

}  // namespace rnicd::app
