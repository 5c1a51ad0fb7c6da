#include "daemon/app/config/config.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <thread>

#include "absl/flags/flag.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/ndk/network_address.h"
#include "base/system/this_process.h"
#include "daemon/app/config/flag_reader.h"
#include "daemon/app/config/memory_pool_flag.h"
#include "daemon/app/config/provider_registry.h"
#include "daemon/app/config/system_flags.h"
#include "daemon/metrics/exposer.h"
#include "daemon/policy/default_policy.h"

ABSL_FLAG(std::string, provider, "soft",
          "kind of adapter to own: soft (in software, reaches clients of this machine only), or cards: verbs (by "
          "libibverbs, on Linux), networkdirect (on Windows)");
ABSL_FLAG(
    std::string, metrics_address, "127.0.0.1:9747",
    "host:port of /metrics, /healthz, /readyz and the status page: an IPv4 address, or an IPv6 one in brackets; [::] "
    "is every address, in IPv4 too; port 0 takes any free one; empty: none");
ABSL_FLAG(int64_t, metrics_max_tenants, 100,
          "tenants with a name of their own on /metrics, the rest is \"other\"; 1 to 10000");
ABSL_FLAG(bool, status_page, true, "serve the status page at / of --metrics_address, to programs of this machine only");
ABSL_FLAG(std::string, policy_file, "",
          "who may use the daemon, as which tenant, and how much of it (docs/POLICY.md); SIGHUP reads it again; empty: "
          "the policy that --print_default_policy prints, in which each uid of each pod or container is a tenant");
ABSL_FLAG(bool, print_default_policy, false,
          "print the policy of a daemon without --policy_file, as a policy file to start from, and exit");
ABSL_FLAG(std::string, audit_log, "",
          "file that gets a JSON line for each decision; it may be renamed at any time; empty: none");
ABSL_FLAG(
    int64_t, audit_bytes_per_second, 65536,
    "bytes of --audit_log that one pod or container, and outside of those one uid, may cause in a second, and as "
    "many again for sessions; 64 seconds' worth may come at once; the rest is counted; 1024 or more; 0: no limit");
ABSL_FLAG(std::string, log_level, "info", "debug, info, warning or error");
ABSL_FLAG(std::string, log_format, "text", "text or json; lines go to stderr");
ABSL_FLAG(int64_t, drain_timeout_ms, 5000, "how long SIGTERM waits for sessions to be taken back; 1 to 600000");
ABSL_FLAG(int64_t, silent_connection_timeout_ms, 10000,
          "a connection without a session that says nothing for so long is dropped; 100 to 3600000");
ABSL_FLAG(int64_t, connection_timeout_ms, 30000,
          "how long a request of a connector waits for its peer; 100 to 3600000");
ABSL_FLAG(int64_t, ticket_lifetime_ms, 30000, "how long a descriptor ticket can be redeemed; 100 to 3600000");
ABSL_FLAG(int64_t, health_interval_ms, 1000,
          "how often each adapter is tried by a registration of the daemon's own; 10 to 3600000");
ABSL_FLAG(int64_t, health_timeout_ms, 3000,
          "an adapter that has not carried out such a registration after so long counts as failing; 10 to 3600000");
ABSL_FLAG(std::string, hold_registrations_while, "",
          "a file; while it exists, no registration is carried out, as by a card that hangs. For tests and trials");
ABSL_FLAG(int64_t, ring_threads, -1,
          "threads that serve rings; -1 to 64; -1: one for each processor, at most 8; 0: the daemon serves none");
ABSL_FLAG(int64_t, ring_spin_us, 20,
          "how long a ring's thread looks at a ring that is empty before it sleeps, in microseconds; 0 to 10000");
ABSL_FLAG(int64_t, ring_spin_percent, 50,
          "share of one processor that all ring threads may spend so; tenants have equal parts of it; 0 to 100");
ABSL_FLAG(int64_t, rpc_threads, 2, "threads that serve the connections of workloads; 1 to 64");
ABSL_FLAG(int64_t, worker_threads, 2,
          "threads that the slow work of one owner may use, such as populating memory; 1 to 256");
ABSL_FLAG(std::string, memory_pool, "",
          "files of memory that are kept ready, PAGE[@NODE]:SIZE[xCOUNT] separated by commas, such as "
          "4KiB:64MiBx8,2MiB@0:1GiBx2: pages of 4KiB, 2MiB or 1GiB, of that NUMA node, in COUNT files of SIZE; "
          "empty: none");
ABSL_FLAG(int64_t, memory_pool_cpu_percent, 50,
          "share of one core that refilling the memory pool may take, at the lowest priority; 1 to 100");
ABSL_FLAG(int64_t, memory_pool_mib_per_second, 1024, "MiB that are added to the memory pool in a second; 1 to 1048576");
ABSL_FLAG(int64_t, pending_threshold_bytes, int64_t{16} << 20,
          "a registration of at least so many bytes runs on a worker and may answer STATUS_PENDING");
ABSL_FLAG(int64_t, max_connections, 4096,
          "connections at the shared sockets, and as many at the doors of grants; 0: no limit");
ABSL_FLAG(int64_t, max_connections_per_uid, 1024,
          "connections of one pod or container, and outside of those of one uid; 0: no limit");
ABSL_FLAG(int64_t, connections_per_second, 256,
          "new connections a second of one pod or container, and outside of those of one uid; eight seconds' worth may "
          "come at once; 0: no limit");
ABSL_FLAG(int64_t, max_sessions, 4096, "sessions in all; 0: no limit");
ABSL_FLAG(int64_t, max_heap_bytes, -1,
          "bytes of the daemon's own memory for what clients hold, in all; -1: a quarter of the machine's memory, at "
          "most 4 GiB; 0: no limit");
ABSL_FLAG(int64_t, max_pinned_bytes, 0, "pinned bytes in all, each page once for each tenant; 0: no limit");
ABSL_FLAG(int64_t, max_memory_bytes, -1,
          "bytes of memory objects in all; -1: half of the machine's memory; 0: no limit");
ABSL_FLAG(int64_t, soft_adapters, 1, "soft provider: number of adapters (soft0, soft1, ...); 1 to 64");
ABSL_FLAG(std::string, soft_addresses, "",
          "soft provider: an IPv4 or IPv6 address for each adapter, separated by commas; empty: 198.18.0.1 for soft0, "
          "198.18.0.2 for soft1, and so on");
ABSL_FLAG(int64_t, soft_max_registration_bytes, int64_t{1} << 40,
          "soft provider: the largest registration, what adapters report as max_registration_size; 4096 or more");
ABSL_FLAG(int64_t, soft_max_regions, 0, "soft provider: registrations an adapter has room for; 0: 8388608");
ABSL_FLAG(std::string, soft_hold_reads_while, "",
          "soft provider: a file; while it exists, the bytes of RDMA reads do not land. For tests and trials");
ABSL_FLAG(int64_t, soft_max_fast_register_pages, 65536,
          "soft provider: the most pages a fast-register region can be made ready for; 16 or more");
ABSL_FLAG(
    std::string, soft_adapter_flags, "0x10113",
    "soft provider: NDK_ADAPTER_FLAG_ bits that adapters report and obey: 0x1 in-order DMA, 0x2 read sink needs no "
    "right, 0x10 read with local invalidate, 0x100 CQ resize, 0x10000 loopback");

namespace rnicd::app {
namespace {

// With less, the longest line would never fit.
constexpr uint64_t kAuditBytesMin = 1024;

void ReadLog(Config& config, FlagReader& reader) {
  const std::string level = absl::GetFlag(FLAGS_log_level);
  const std::optional<log::Level> known = log::LevelFromName(level);
  if (!known.has_value()) {
    reader.AddError("log_level", absl::StrCat("must be debug, info, warning or error, not \"", level, "\""));
  }
  config.log.level = known.value_or(log::Level::kInfo);
  const std::string format = absl::GetFlag(FLAGS_log_format);
  if (format != "text" && format != "json") {
    reader.AddError("log_format", absl::StrCat("must be text or json, not \"", format, "\""));
  }
  config.log.json = format == "json";
}

uint32_t RingThreadsOf(int64_t flag) {
  constexpr unsigned kMost = 8;
  return flag >= 0 ? static_cast<uint32_t>(flag) : std::clamp(std::thread::hardware_concurrency(), 1U, kMost);
}

void ReadServices(Config& config, FlagReader& reader) {
  config.provider = absl::GetFlag(FLAGS_provider);
  if (!IsKnownProvider(config.provider, config.cards)) {
    reader.AddError("provider",
                    absl::StrCat("must be one of ", KnownProviders(config.cards), ", not \"", config.provider, "\""));
  }
  config.metrics_address = absl::GetFlag(FLAGS_metrics_address);
  if (!config.metrics_address.empty() && !metrics::IsHostPort(config.metrics_address)) {
    reader.AddError("metrics_address",
                    absl::StrCat("must be empty or a numeric host:port, such as 127.0.0.1:9747 or [::1]:9747, not \"",
                                 absl::CHexEscape(config.metrics_address), "\""));
  }
  config.hold_registrations = reader.PresenceOf(FLAGS_hold_registrations_while);
  config.metrics_max_tenants = static_cast<uint32_t>(reader.Number(FLAGS_metrics_max_tenants, 1, 10000));
  config.status_page = absl::GetFlag(FLAGS_status_page);
  config.drain_timeout = reader.Milliseconds(FLAGS_drain_timeout_ms, 1, kTenMinutesMs);
  config.limits.connection_timeout = reader.Milliseconds(FLAGS_connection_timeout_ms, 100, kOneHourMs);
  config.ticket_lifetime = reader.Milliseconds(FLAGS_ticket_lifetime_ms, 100, kOneHourMs);
  config.health_interval = reader.Milliseconds(FLAGS_health_interval_ms, 10, kOneHourMs);
  config.health_timeout = reader.Milliseconds(FLAGS_health_timeout_ms, 10, kOneHourMs);
  config.rpc_threads = static_cast<uint32_t>(reader.Number(FLAGS_rpc_threads, 1, 64));
  config.worker_threads = static_cast<uint32_t>(reader.Number(FLAGS_worker_threads, 1, 256));
  config.ring_threads = RingThreadsOf(reader.Number(FLAGS_ring_threads, -1, 64));
  config.ring_spin.longest = std::chrono::microseconds(reader.Number(FLAGS_ring_spin_us, 0, 10'000));
  config.ring_spin.percent = static_cast<uint32_t>(reader.Number(FLAGS_ring_spin_percent, 0, 100));
  config.connections.silent_timeout = reader.Milliseconds(FLAGS_silent_connection_timeout_ms, 100, kOneHourMs);
  config.connections.max = reader.Limit(FLAGS_max_connections);
  config.connections.max_per_owner = reader.Limit(FLAGS_max_connections_per_uid);
  const uint64_t connections_per_second = reader.Limit(FLAGS_connections_per_second);
  config.connections.rate = {.per_second = connections_per_second, .burst = 8 * connections_per_second};
}

void ReadMemoryPool(Config& config, FlagReader& reader) {
  auto classes = ParsePoolClasses(absl::GetFlag(FLAGS_memory_pool));
  if (classes.ok()) {
    config.memory_pool = *std::move(classes);
  } else {
    reader.AddError("memory_pool", std::string(classes.status().message()));
  }
  config.refill.cpu_percent = static_cast<uint32_t>(reader.Number(FLAGS_memory_pool_cpu_percent, 1, 100));
  config.refill.bytes_per_second = reader.Number(FLAGS_memory_pool_mib_per_second, 1, 1048576) << 20;
}

void ReadTrust(Config& config, FlagReader& reader) {
  config.policy_file = reader.AbsolutePath(FLAGS_policy_file);
  config.print_default_policy = absl::GetFlag(FLAGS_print_default_policy);
  config.audit_log = reader.AbsolutePath(FLAGS_audit_log);
  config.audit_bytes_per_second = reader.Limit(FLAGS_audit_bytes_per_second);
  if (config.audit_bytes_per_second != 0 && config.audit_bytes_per_second < kAuditBytesMin) {
    reader.AddError("audit_bytes_per_second", absl::StrCat("must be 0 or at least ", kAuditBytesMin));
  }
}

// 4 GiB are enough for sixteen uids at their limits.
constexpr uint64_t kHeapBytesMost = uint64_t{4} << 30;

uint64_t HeapBytesOfMachine() { return std::min(MachineMemoryBytes() / 4, kHeapBytesMost); }

void ReadLimits(Config& config, FlagReader& reader) {
  using core::Resource;
  core::NodeLimits& limits = config.limits;
  limits.node[Resource::kSessions] = reader.Limit(FLAGS_max_sessions);
  limits.node[Resource::kPinnedBytes] = reader.Limit(FLAGS_max_pinned_bytes);
  const bool memory_by_machine = absl::GetFlag(FLAGS_max_memory_bytes) == -1;
  limits.node[Resource::kMemoryBytes] =
      memory_by_machine ? MachineMemoryBytes() / 2 : reader.Limit(FLAGS_max_memory_bytes);
  const bool heap_by_machine = absl::GetFlag(FLAGS_max_heap_bytes) == -1;
  limits.node[Resource::kHeapBytes] = heap_by_machine ? HeapBytesOfMachine() : reader.Limit(FLAGS_max_heap_bytes);
  limits.session = policy::DefaultPolicy().tenants.front().limits.session;
  limits.pending_threshold_bytes = reader.Number(FLAGS_pending_threshold_bytes, 1, kUnbounded);
}

std::vector<IpAddress> ReadSoftAddresses(FlagReader& reader, uint32_t adapters) {
  const std::string text = absl::GetFlag(FLAGS_soft_addresses);
  if (text.empty()) {
    return {};
  }
  std::vector<IpAddress> addresses;
  const std::vector<std::string> words = absl::StrSplit(text, ',');
  for (const std::string& word : words) {
    addresses.push_back(IpAddress::FromText(word).value_or(IpAddress()));
  }
  const bool are_hosts = std::none_of(addresses.begin(), addresses.end(), std::mem_fn(&IpAddress::is_wildcard));
  const size_t different = std::set<IpAddress>(addresses.begin(), addresses.end()).size();
  if (!are_hosts || addresses.size() != adapters || different != adapters) {
    reader.AddError("soft_addresses",
                    absl::StrCat("must be empty or --soft_adapters different addresses with commas between them, such "
                                 "as 198.18.0.1, not \"",
                                 absl::CHexEscape(text), "\""));
  }
  return addresses;
}

// Flags of a kind of card that is not selected are read and checked all the same, so that an error in a flag file shows
// before the kind is changed.
provider::SoftOptions ReadSoftFlags(FlagReader& reader) {
  provider::SoftOptions options;
  options.adapters = static_cast<uint32_t>(reader.Number(FLAGS_soft_adapters, 1, 64));
  options.addresses = ReadSoftAddresses(reader, options.adapters);
  options.max_registration_bytes = reader.Number(FLAGS_soft_max_registration_bytes, kRegistrationBytesMin, kUnbounded);
  options.max_regions = reader.Limit(FLAGS_soft_max_regions);
  options.hold_reads = reader.PresenceOf(FLAGS_soft_hold_reads_while);
  options.read_delay = std::chrono::milliseconds(options.hold_reads == nullptr ? 0 : 1);
  options.max_fast_register_pages =
      static_cast<uint32_t>(reader.Number(FLAGS_soft_max_fast_register_pages, kFastRegisterPagesMin, UINT32_MAX));
  options.adapter_flags = reader.Bits(FLAGS_soft_adapter_flags, provider::SoftOptions().adapter_flags);
  return options;
}

}  // namespace

Config ConfigFromFlags(std::span<const ProviderKind> cards, std::vector<std::string>& errors) {
  Config config;
  config.cards = cards;
  FlagReader reader(errors);
  ReadLog(config, reader);
  ReadServices(config, reader);
  ReadMemoryPool(config, reader);
  ReadTrust(config, reader);
  ReadLimits(config, reader);
  config.soft = ReadSoftFlags(reader);
  ReadSystemFlags(config, reader);
  return config;
}

}  // namespace rnicd::app
