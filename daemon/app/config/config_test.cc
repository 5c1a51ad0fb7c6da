#include "daemon/app/config/config.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/flags/declare.h"
#include "base/status.h"
#include "base/system/this_process.h"
#include "daemon/app/config/config_fixture_test.h"
#include "daemon/app/config/provider_registry.h"

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
ABSL_DECLARE_FLAG(int64_t, pending_threshold_bytes);

namespace rnicd::app {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST_F(ConfigTest, TheDefaultsAreValid) {
  EXPECT_THAT(Errors(), IsEmpty());
  EXPECT_EQ(config_.provider, "soft");
  EXPECT_EQ(config_.metrics_address, "127.0.0.1:9747");
  EXPECT_TRUE(config_.status_page);
  EXPECT_EQ(config_.drain_timeout, std::chrono::seconds(5));
  EXPECT_EQ(config_.health_interval, std::chrono::seconds(1));
  EXPECT_EQ(config_.health_timeout, std::chrono::seconds(3));
  EXPECT_EQ(config_.limits.pending_threshold_bytes, uint64_t{16} << 20);
  EXPECT_GT(config_.limits.session[core::Resource::kPendingRequests], 0u);
  EXPECT_FALSE(config_.log.json);
}

TEST_F(ConfigTest, WithoutFlagsTheNodeTakesABoundedAmountOfTheDaemonsMemory) {
  EXPECT_THAT(Errors(), IsEmpty());
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
  absl::SetFlag(&FLAGS_metrics_address, "");
  absl::SetFlag(&FLAGS_metrics_max_tenants, 7);
  absl::SetFlag(&FLAGS_status_page, false);
  absl::SetFlag(&FLAGS_health_interval_ms, 200);
  absl::SetFlag(&FLAGS_health_timeout_ms, 700);
  absl::SetFlag(&FLAGS_log_level, "error");
  absl::SetFlag(&FLAGS_log_format, "json");
  absl::SetFlag(&FLAGS_max_pinned_bytes, 123456);
  absl::SetFlag(&FLAGS_pending_threshold_bytes, 4096);
  EXPECT_THAT(Errors(), IsEmpty());
  EXPECT_EQ(config_.metrics_address, "");
  EXPECT_EQ(config_.metrics_max_tenants, 7u);
  EXPECT_FALSE(config_.status_page);
  EXPECT_EQ(config_.health_interval, std::chrono::milliseconds(200));
  EXPECT_EQ(config_.health_timeout, std::chrono::milliseconds(700));
  EXPECT_EQ(config_.log.level, log::Level::kError);
  EXPECT_TRUE(config_.log.json);
  EXPECT_EQ(config_.limits.node[core::Resource::kPinnedBytes], 123456u);
  EXPECT_EQ(config_.limits.pending_threshold_bytes, 4096u);
}

constexpr BadValue kBadValues[] = {
    {"provider", "verbs2"},
    {"provider", ""},
    {"metrics_address", "localhost:1"},
    {"metrics_address", "127.0.0.1"},
    {"metrics_address", "::1:9747"},
    {"metrics_address", "127.0.0.1:9747\r"},
    {"metrics_max_tenants", "0"},
    {"metrics_max_tenants", "10001"},
    {"log_level", "loud"},
    {"log_format", "xml"},
    {"drain_timeout_ms", "0"},
    {"drain_timeout_ms", "600001"},
    {"silent_connection_timeout_ms", "99"},
    {"silent_connection_timeout_ms", "3600001"},
    {"connection_timeout_ms", "99"},
    {"ticket_lifetime_ms", "99"},
    {"ticket_lifetime_ms", "-1"},
    {"health_interval_ms", "9"},
    {"health_interval_ms", "3600001"},
    {"health_timeout_ms", "9"},
    {"health_timeout_ms", "3600001"},
    {"rpc_threads", "0"},
    {"rpc_threads", "65"},
    {"ring_threads", "-2"},
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
    {"max_heap_bytes", "-2"},
    {"max_pinned_bytes", "-1"},
    {"max_memory_bytes", "-2"},
    {"soft_adapters", "0"},
    {"soft_adapters", "65"},
    {"soft_addresses", "soft0"},
    {"soft_addresses", "0.0.0.0"},
    {"soft_addresses", "198.18.0.1,198.18.0.2"},
    {"soft_max_registration_bytes", "4095"},
    {"soft_max_regions", "-1"},
    {"hold_registrations_while", "hold"},
    {"soft_hold_reads_while", "hold"},
    {"soft_max_fast_register_pages", "15"},
    {"soft_adapter_flags", "0x4"},
    {"soft_adapter_flags", "all"},
};

TEST_F(ConfigTest, EveryBadValueIsNamedByItsFlag) { ExpectEachIsNamedByItsFlag(kBadValues); }

TEST_F(ConfigTest, ByDefaultMemoryObjectsMayTakeHalfOfTheMachine) {
  EXPECT_THAT(Errors(), IsEmpty());
  EXPECT_EQ(config_.limits.node[core::Resource::kMemoryBytes], MachineMemoryBytes() / 2);
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

// The flags repeat its defaults, for --help.
TEST_F(ConfigTest, ByDefaultTheSoftCardGetsItsOwnDefaults) {
  EXPECT_THAT(Errors(), IsEmpty());
  EXPECT_EQ(config_.soft.adapters, provider::SoftOptions().adapters);
  EXPECT_EQ(config_.soft.adapter_flags, provider::SoftOptions().adapter_flags);
}

TEST_F(ConfigTest, EachSoftCardHasAnAddressOfItsOwn) {
  Set("soft_adapters", "2");
  Set("soft_addresses", "10.0.0.1,fd00::1");
  EXPECT_THAT(Errors(), IsEmpty());
  EXPECT_THAT(config_.soft.addresses, ElementsAre(IpAddress::FromText("10.0.0.1"), IpAddress::FromText("fd00::1")));
  for (const char* const bad :
       {"10.0.0.1", "10.0.0.1,::ffff:10.0.0.1", "10.0.0.1,fd00::1,fd00::2", "10.0.0.1,fd00::1,"}) {
    Set("soft_addresses", bad);
    EXPECT_THAT(Errors(), ElementsAre(::testing::StartsWith("--soft_addresses: must be empty or --soft_adapters")))
        << bad;
  }
}

TEST(ProviderRegistry, MakesWhatItKnows) {
  EXPECT_TRUE(IsKnownProvider("soft", {}));
  EXPECT_FALSE(IsKnownProvider("Soft", {}));
  EXPECT_FALSE(IsKnownProvider("", {}));
  EXPECT_EQ(KnownProviders({}), "soft");
  KernelRandom random;
  const auto provider =
      MakeProvider({.provider = "soft", .soft = {.adapters = 2}}, random, provider::IgnoreAdapterEvents);
  ASSERT_TRUE(provider.ok()) << provider.status();
  EXPECT_EQ((*provider)->name(), "soft");
  EXPECT_EQ((*provider)->ListAdapters().size(), 2u);
}

}  // namespace
}  // namespace rnicd::app
