#include "daemon/app/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"
#include "base/status.h"
#include "daemon/app/provider_registry.h"

ABSL_DECLARE_FLAG(std::string, socket_dir);
ABSL_DECLARE_FLAG(std::string, admin_socket_dir);
ABSL_DECLARE_FLAG(std::string, socket_mode);
ABSL_DECLARE_FLAG(std::string, provider);
ABSL_DECLARE_FLAG(std::string, metrics_address);
ABSL_DECLARE_FLAG(int64_t, metrics_max_tenants);
ABSL_DECLARE_FLAG(bool, status_page);
ABSL_DECLARE_FLAG(int64_t, health_interval_ms);
ABSL_DECLARE_FLAG(int64_t, health_timeout_ms);
ABSL_DECLARE_FLAG(std::string, log_level);
ABSL_DECLARE_FLAG(std::string, log_format);
ABSL_DECLARE_FLAG(int64_t, audit_bytes_per_second);
ABSL_DECLARE_FLAG(int64_t, max_pinned_bytes);
ABSL_DECLARE_FLAG(int64_t, max_heap_bytes);
ABSL_DECLARE_FLAG(int64_t, max_sessions_per_uid);
ABSL_DECLARE_FLAG(int64_t, pending_threshold_bytes);

namespace rnicd::app {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class ConfigTest : public ::testing::Test {
 protected:
  // Sets a flag by name, as the command line does.
  static void Set(const char* name, const std::string& value) {
    absl::CommandLineFlag* flag = absl::FindCommandLineFlag(name);
    ASSERT_NE(flag, nullptr) << name;
    std::string error;
    ASSERT_TRUE(flag->ParseFrom(value, &error)) << name << ": " << error;
  }
  std::vector<std::string> Errors() {
    std::vector<std::string> errors;
    config_ = ConfigFromFlags(errors);
    return errors;
  }

  absl::FlagSaver saver_;
  Config config_;
};

TEST_F(ConfigTest, TheDefaultsAreValid) {
  EXPECT_THAT(Errors(), IsEmpty());
  EXPECT_EQ(config_.socket_dir, "/run/rnicd");
  EXPECT_EQ(config_.admin_socket_dir, "/run/rnicd-admin");
  EXPECT_EQ(config_.provider, "soft");
  EXPECT_EQ(config_.metrics_address, "127.0.0.1:9747");
  EXPECT_TRUE(config_.status_page);
  EXPECT_EQ(config_.drain_timeout, std::chrono::seconds(5));
  EXPECT_EQ(config_.health_interval, std::chrono::seconds(1));
  EXPECT_EQ(config_.health_timeout, std::chrono::seconds(3));
  EXPECT_EQ(config_.front_door.socket_mode, 0666u);
  EXPECT_EQ(config_.limits.pending_threshold_bytes, uint64_t{16} << 20);
  EXPECT_GT(config_.limits.session[core::Resource::kPendingRequests], 0u);
  EXPECT_FALSE(config_.log.json);
}

TEST_F(ConfigTest, WithoutFlagsAUidAndTheNodeTakeABoundedAmountOfTheDaemonsMemory) {
  EXPECT_THAT(Errors(), IsEmpty());
  EXPECT_EQ(config_.uid_limits[core::Resource::kSessions], 256u);
  EXPECT_EQ(config_.uid_limits[core::Resource::kRegions], 131072u);
  EXPECT_EQ(config_.uid_limits[core::Resource::kLogicalPages], 16777216u);
  EXPECT_EQ(config_.uid_limits[core::Resource::kHeapBytes], uint64_t{256} << 20);
  EXPECT_GT(config_.limits.node[core::Resource::kHeapBytes], 0u);
  EXPECT_LE(config_.limits.node[core::Resource::kHeapBytes], uint64_t{4} << 30);
  absl::SetFlag(&FLAGS_max_heap_bytes, 4096);
  EXPECT_THAT(Errors(), IsEmpty());
  EXPECT_EQ(config_.limits.node[core::Resource::kHeapBytes], 4096u);
  absl::SetFlag(&FLAGS_max_heap_bytes, 0);
  EXPECT_THAT(Errors(), IsEmpty());
  EXPECT_EQ(config_.limits.node[core::Resource::kHeapBytes], 0u) << "no limit";
}

TEST_F(ConfigTest, TheRateOfTheAuditLogHasRoomForALineOrIsNone) {
  EXPECT_THAT(Errors(), IsEmpty());
  EXPECT_EQ(config_.audit_bytes_per_second, 65536u);
  for (const int64_t valid : {0, 1024}) {
    absl::SetFlag(&FLAGS_audit_bytes_per_second, valid);
    EXPECT_THAT(Errors(), IsEmpty()) << valid;
  }
  absl::SetFlag(&FLAGS_audit_bytes_per_second, 1023);
  EXPECT_THAT(Errors(), ElementsAre("--audit_bytes_per_second: must be 0 or at least 1024"));
}

TEST_F(ConfigTest, ValuesArriveWhereTheyBelong) {
  absl::SetFlag(&FLAGS_socket_dir, "/tmp/a");
  absl::SetFlag(&FLAGS_admin_socket_dir, "/tmp/b");
  absl::SetFlag(&FLAGS_socket_mode, "0660");
  absl::SetFlag(&FLAGS_metrics_address, "");
  absl::SetFlag(&FLAGS_metrics_max_tenants, 7);
  absl::SetFlag(&FLAGS_status_page, false);
  absl::SetFlag(&FLAGS_health_interval_ms, 200);
  absl::SetFlag(&FLAGS_health_timeout_ms, 700);
  absl::SetFlag(&FLAGS_log_level, "error");
  absl::SetFlag(&FLAGS_log_format, "json");
  absl::SetFlag(&FLAGS_max_pinned_bytes, 123456);
  absl::SetFlag(&FLAGS_max_sessions_per_uid, 7);
  absl::SetFlag(&FLAGS_pending_threshold_bytes, 4096);
  EXPECT_THAT(Errors(), IsEmpty());
  EXPECT_EQ(config_.socket_dir, "/tmp/a");
  EXPECT_EQ(config_.admin_socket_dir, "/tmp/b");
  EXPECT_EQ(config_.front_door.socket_mode, 0660u);
  EXPECT_EQ(config_.metrics_address, "");
  EXPECT_EQ(config_.metrics_max_tenants, 7u);
  EXPECT_FALSE(config_.status_page);
  EXPECT_EQ(config_.health_interval, std::chrono::milliseconds(200));
  EXPECT_EQ(config_.health_timeout, std::chrono::milliseconds(700));
  EXPECT_EQ(config_.log.level, log::Level::kError);
  EXPECT_TRUE(config_.log.json);
  EXPECT_EQ(config_.limits.node[core::Resource::kPinnedBytes], 123456u);
  EXPECT_EQ(config_.uid_limits[core::Resource::kSessions], 7u);
  EXPECT_EQ(config_.limits.pending_threshold_bytes, 4096u);
}

struct BadValue {
  const char* flag;
  const char* value;
};

constexpr BadValue kBadValues[] = {
    {"socket_dir", "relative"},
    {"admin_socket_dir", "also-relative"},
    {"socket_mode", "0888"},
    {"socket_mode", "1777"},
    {"socket_mode", ""},
    {"socket_mode", "rw"},
    {"provider", "verbs2"},
    {"provider", ""},
    {"metrics_address", "localhost:1"},
    {"metrics_address", "127.0.0.1"},
    {"metrics_max_tenants", "0"},
    {"metrics_max_tenants", "10001"},
    {"log_level", "loud"},
    {"log_format", "xml"},
    {"drain_timeout_ms", "0"},
    {"drain_timeout_ms", "600001"},
    {"silent_connection_timeout_ms", "99"},
    {"silent_connection_timeout_ms", "3600001"},
    {"ticket_lifetime_ms", "99"},
    {"ticket_lifetime_ms", "-1"},
    {"health_interval_ms", "9"},
    {"health_interval_ms", "3600001"},
    {"health_timeout_ms", "9"},
    {"health_timeout_ms", "3600001"},
    {"rpc_threads", "0"},
    {"rpc_threads", "65"},
    {"ring_threads", "-1"},
    {"ring_threads", "65"},
    {"ring_spin_us", "10001"},
    {"ring_spin_percent", "101"},
    {"worker_threads", "0"},
    {"worker_threads", "257"},
    {"memory_pool", "4KiB"},
    {"memory_pool", "8KiB:1MiB"},
    {"memory_pool", "4KiB:1MB"},
    {"memory_pool", "4KiB:0MiB"},
    {"memory_pool", "2MiB:1MiB"},
    {"memory_pool", "4KiB@1024:1MiB"},
    {"memory_pool", "4KiB@:1MiB"},
    {"memory_pool", "4KiB:1MiBx0"},
    {"memory_pool", "4KiB:1MiBx65537"},
    {"memory_pool", "4KiB:1MiB,"},
    {"memory_pool", "4KiB:2048TiB"},
    {"memory_pool_cpu_percent", "0"},
    {"memory_pool_cpu_percent", "101"},
    {"memory_pool_mib_per_second", "0"},
    {"memory_pool_mib_per_second", "1048577"},
    {"pending_threshold_bytes", "0"},
    {"max_connections", "-1"},
    {"max_connections_per_uid", "-1"},
    {"max_sessions", "-1"},
    {"max_sessions_per_uid", "-1"},
    {"max_regions_per_uid", "-1"},
    {"max_logical_pages_per_uid", "-1"},
    {"max_heap_bytes_per_uid", "-1"},
    {"max_heap_bytes", "-2"},
    {"max_logical_pages_per_session", "-1"},
    {"max_heap_bytes_per_session", "-1"},
    {"max_pinned_bytes", "-1"},
    {"max_memory_bytes", "-2"},
    {"max_adapters_per_session", "-1"},
    {"max_protection_domains_per_session", "-1"},
    {"max_memory_objects_per_session", "-1"},
    {"max_memory_bytes_per_session", "-1"},
    {"max_regions_per_session", "-1"},
    {"max_pinned_bytes_per_session", "-1"},
    {"max_pending_requests_per_session", "0"},
    {"soft_adapters", "0"},
    {"soft_adapters", "65"},
    {"soft_max_registration_bytes", "4095"},
    {"soft_max_regions", "-1"},
    {"soft_register_delay_us", "-1"},
    {"soft_register_delay_us", "60000001"},
    {"soft_read_delay_us", "-1"},
    {"soft_max_fast_register_pages", "15"},
    {"soft_adapter_flags", "0x4"},
    {"soft_adapter_flags", "all"},
    {"verbs_devices", ","},
    {"verbs_devices", "rxa,"},
    {"verbs_devices", "rxa, rxb"},
    {"verbs_devices", "rxa,rxb,rxa"},
    {"verbs_devices", "../rxa"},
    {"verbs_gid", ""},
    {"verbs_gid", "IPv4"},
    {"verbs_gid", "3"},
    {"verbs_gid", "10.98.0.256"},
    {"verbs_gid", "fe80::1%va"},
    {"verbs_fast_engine", ""},
    {"verbs_fast_engine", "umr"},
    {"verbs_max_registration_bytes", "4095"},
    {"verbs_max_regions", "-1"},
    {"verbs_max_fast_register_pages", "15"},
    {"verbs_max_fast_register_pages", "4294967296"},
    {"verbs_adapter_flags", "0x1"},
    {"verbs_adapter_flags", "0x10113"},
    {"verbs_adapter_flags", "none"},
    {"verbs_ack_timeout", "0"},
    {"verbs_ack_timeout", "32"},
    {"verbs_probe_interval_ms", "9"},
    {"verbs_probe_interval_ms", "3600001"},
    {"verbs_register_delay_us", "-1"},
    {"verbs_register_delay_us", "60000001"},
};

TEST_F(ConfigTest, EveryBadValueIsNamedByItsFlag) {
  for (const BadValue& bad : kBadValues) {
    const absl::FlagSaver saver;
    // Its default follows --socket_dir, and would repeat its errors.
    absl::SetFlag(&FLAGS_admin_socket_dir, "/run/admin");
    Set(bad.flag, bad.value);
    EXPECT_THAT(Errors(), ElementsAre(StartsWith("--" + std::string(bad.flag) + ": must"))) << bad.value;
  }
}

TEST_F(ConfigTest, EveryMistakeIsReportedAtOnce) {
  std::set<std::string> flags;
  for (const BadValue& bad : kBadValues) {
    Set(bad.flag, bad.value);
    flags.insert(bad.flag);
  }
  const std::vector<std::string> errors = Errors();
  EXPECT_EQ(errors.size(), flags.size());
  for (const std::string& flag : flags) {
    EXPECT_THAT(errors, ::testing::Contains(StartsWith("--" + flag + ":")));
  }
}

TEST_F(ConfigTest, TheOperatorsDirectoryMustNotBeTheOneContainersSee) {
  absl::SetFlag(&FLAGS_admin_socket_dir, absl::GetFlag(FLAGS_socket_dir));
  EXPECT_THAT(Errors(), ElementsAre(HasSubstr("must not be --socket_dir")));
}

TEST_F(ConfigTest, ByDefaultMemoryObjectsMayTakeHalfOfTheMachine) {
  EXPECT_THAT(Errors(), IsEmpty());
  const auto pages = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES));
  const auto page_bytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  EXPECT_NEAR(static_cast<double>(config_.limits.node[core::Resource::kMemoryBytes]),
              static_cast<double>(pages * page_bytes) / 2, static_cast<double>(page_bytes));
  Set("max_memory_bytes", "0");
  EXPECT_THAT(Errors(), IsEmpty());
  EXPECT_EQ(config_.limits.node[core::Resource::kMemoryBytes], 0u) << "0 still means no limit";
}

TEST_F(ConfigTest, APoolIsAListOfClassesAndWithoutAFlagThereIsNone) {
  EXPECT_THAT(Errors(), IsEmpty());
  EXPECT_THAT(config_.memory_pool, IsEmpty());
  Set("memory_pool", "4KiB:64MiBx8,2MiB@1:1GiB");
  Set("memory_pool_cpu_percent", "25");
  Set("memory_pool_mib_per_second", "100");
  EXPECT_THAT(Errors(), IsEmpty());
  ASSERT_EQ(config_.memory_pool.size(), 2u);
  EXPECT_EQ(config_.memory_pool[0].pages.page_bytes, 4096u);
  EXPECT_FALSE(config_.memory_pool[0].pages.numa_node.has_value());
  EXPECT_EQ(config_.memory_pool[0].file_bytes, uint64_t{64} << 20);
  EXPECT_EQ(config_.memory_pool[0].files, 8u);
  EXPECT_EQ(config_.memory_pool[1].pages.page_bytes, uint64_t{2} << 20);
  EXPECT_EQ(config_.memory_pool[1].pages.numa_node, 1u);
  EXPECT_EQ(config_.memory_pool[1].file_bytes, uint64_t{1} << 30);
  EXPECT_EQ(config_.memory_pool[1].files, 1u);
  EXPECT_EQ(config_.refill.cpu_percent, 25u);
  EXPECT_EQ(config_.refill.bytes_per_second, uint64_t{100} << 20);
}

TEST_F(ConfigTest, AnEmptySocketDirectoryIsRefused) {
  absl::SetFlag(&FLAGS_socket_dir, "");
  EXPECT_THAT(Errors(), ::testing::Contains(StartsWith("--socket_dir: must be an absolute path")));
}

// The flags repeat the providers' defaults, for --help.
TEST_F(ConfigTest, ByDefaultProvidersGetTheirOwnDefaults) {
  EXPECT_THAT(Errors(), IsEmpty());
  const provider::VerbsOptions verbs;
  EXPECT_THAT(config_.verbs.devices, IsEmpty());
  EXPECT_EQ(config_.verbs.gid.kind, verbs.gid.kind);
  EXPECT_EQ(config_.verbs.fast_engine, verbs.fast_engine);
  EXPECT_FALSE(config_.verbs.allow_unbounded_windows);
  EXPECT_EQ(config_.verbs.max_registration_bytes, verbs.max_registration_bytes);
  EXPECT_EQ(config_.verbs.max_regions, verbs.max_regions);
  EXPECT_EQ(config_.verbs.max_fast_register_pages, verbs.max_fast_register_pages);
  EXPECT_EQ(config_.verbs.adapter_flags, verbs.adapter_flags);
  EXPECT_EQ(config_.verbs.ack_timeout, verbs.ack_timeout);
  EXPECT_EQ(config_.verbs.probe_interval, verbs.probe_interval);
  EXPECT_EQ(config_.verbs.register_delay, verbs.register_delay);
  EXPECT_EQ(config_.soft.adapters, provider::SoftOptions().adapters);
  EXPECT_EQ(config_.soft.adapter_flags, provider::SoftOptions().adapter_flags);
}

TEST_F(ConfigTest, VerbsValuesArriveWhereTheyBelong) {
  Set("provider", "verbs");
  Set("verbs_devices", "rxb,rxa");
  Set("verbs_gid", "10.98.0.1");
  Set("verbs_fast_engine", "window");
  Set("verbs_allow_unbounded_windows", "true");
  Set("verbs_max_registration_bytes", "1048576");
  Set("verbs_max_regions", "7");
  Set("verbs_max_fast_register_pages", "64");
  Set("verbs_adapter_flags", "0x10000");
  Set("verbs_ack_timeout", "14");
  Set("verbs_probe_interval_ms", "250");
  Set("verbs_register_delay_us", "1500");
  EXPECT_THAT(Errors(), IsEmpty());
  EXPECT_EQ(config_.provider, "verbs");
  EXPECT_THAT(config_.verbs.devices, ElementsAre("rxb", "rxa"));
  EXPECT_EQ(config_.verbs.gid.kind, provider::GidRule::Kind::kAddress);
  EXPECT_EQ(config_.verbs.fast_engine, provider::FastEngine::kWindow);
  EXPECT_TRUE(config_.verbs.allow_unbounded_windows);
  EXPECT_EQ(config_.verbs.max_registration_bytes, uint64_t{1} << 20);
  EXPECT_EQ(config_.verbs.max_regions, 7u);
  EXPECT_EQ(config_.verbs.max_fast_register_pages, 64u);
  EXPECT_EQ(config_.verbs.adapter_flags, kAdapterFlagLoopback);
  EXPECT_EQ(config_.verbs.ack_timeout, 14);
  EXPECT_EQ(config_.verbs.probe_interval, std::chrono::milliseconds(250));
  EXPECT_EQ(config_.verbs.register_delay, std::chrono::microseconds(1500));
}

TEST_F(ConfigTest, EachEngineAndKindOfAddressHasItsWord) {
  using Kind = provider::GidRule::Kind;
  const std::pair<const char*, Kind> kinds[] = {{"auto", Kind::kBest},
                                                {"ipv4", Kind::kIpv4},
                                                {"ipv6", Kind::kIpv6},
                                                {"link-local", Kind::kLinkLocal},
                                                {"fe80::1", Kind::kAddress}};
  for (const auto& [word, kind] : kinds) {
    Set("verbs_gid", word);
    EXPECT_THAT(Errors(), IsEmpty()) << word;
    EXPECT_EQ(config_.verbs.gid.kind, kind) << word;
  }
  using provider::FastEngine;
  const std::pair<const char*, FastEngine> engines[] = {{"auto", FastEngine::kAuto},
                                                        {"kernel", FastEngine::kKernel},
                                                        {"registration", FastEngine::kRegistration},
                                                        {"window", FastEngine::kWindow}};
  for (const auto& [word, engine] : engines) {
    Set("verbs_fast_engine", word);
    EXPECT_THAT(Errors(), IsEmpty()) << word;
    EXPECT_EQ(config_.verbs.fast_engine, engine) << word;
  }
}

TEST_F(ConfigTest, ThePathsOfTheSandboxAreThoseOfTheFlags) {
  Set("socket_dir", "/run/r");
  Set("audit_log", "/var/log/r/audit");
  Set("policy_file", "/etc/r/policy");
  Set("provider", "soft");
  EXPECT_THAT(Errors(), IsEmpty());
  ASSERT_TRUE(config_.sandbox.paths.has_value());
  EXPECT_THAT(config_.sandbox.paths->read, ElementsAre("/etc/r"));
  EXPECT_THAT(config_.sandbox.paths->write, ElementsAre("/run/r", "/run/r-admin", "/var/log/r"));
  EXPECT_THAT(config_.sandbox.paths->devices, IsEmpty());
  EXPECT_FALSE(config_.sandbox.looks_for_cards);
  Set("provider", "verbs");
  EXPECT_THAT(Errors(), IsEmpty());
  EXPECT_THAT(config_.sandbox.paths->devices, ElementsAre("/dev/infiniband"));
  EXPECT_TRUE(config_.sandbox.looks_for_cards);
  Set("restrict_paths", "false");
  EXPECT_THAT(Errors(), IsEmpty());
  EXPECT_FALSE(config_.sandbox.paths.has_value());
}

TEST(ProviderRegistry, MakesWhatItKnows) {
  EXPECT_TRUE(IsKnownProvider("soft"));
  EXPECT_TRUE(IsKnownProvider("verbs"));
  EXPECT_FALSE(IsKnownProvider("Soft"));
  EXPECT_FALSE(IsKnownProvider(""));
  EXPECT_EQ(KnownProviders(), "soft, verbs");
  KernelRandom random;
  const auto provider = MakeProvider("soft", {.soft = {.adapters = 2}}, random, provider::IgnoreAdapterEvents);
  ASSERT_TRUE(provider.ok()) << provider.status();
  EXPECT_EQ((*provider)->name(), "soft");
  EXPECT_EQ((*provider)->ListAdapters().size(), 2u);
}

// No machine has a card of that name, and most have none at all.
TEST(ProviderRegistry, SaysWhichCardIsMissing) {
  KernelRandom random;
  const auto provider =
      MakeProvider("verbs", {.verbs = {.devices = {"no_such_card0"}}}, random, provider::IgnoreAdapterEvents);
  ASSERT_FALSE(provider.ok());
  EXPECT_TRUE(FailedWith(provider.status(), ErrorReason::ADAPTER_NOT_FOUND)) << provider.status();
  EXPECT_THAT(std::string(provider.status().message()), HasSubstr("no_such_card0"));
}

}  // namespace
}  // namespace rnicd::app
