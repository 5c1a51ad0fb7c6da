#include "daemon/metrics/state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include <set>
#include <string>
#include <vector>

#include "daemon/core/session/core_fixture_test.h"
#include "daemon/metrics/catalogue.h"

namespace rnicd::metrics {
namespace {

using core::CallerNumbered;
using core::kPage;
using core::Owner;
using core::Resource;
using core::World;
using core::WorldOptions;
using ::testing::HasSubstr;
using ::testing::Not;

class StateTest : public ::testing::Test {
 protected:
  explicit StateTest(const WorldOptions& options = {}) : world_(options) {}

  Sources AllSources() {
    return {.node = world_.node,
            .registry = world_.registry,
            .connections = [] { return uint64_t{5}; },
            .adapters = [this] { return readings_; },
            .device_regions = [this] { return world_.provider.live_regions(); },
            .audit = [] { return AuditReading{.lost = 2, .merged = 3, .left_out = 4}; },
            .log_lines_lost = [] { return uint64_t{6}; },
            .parts_not_serving = [] { return size_t{7}; },
            .process_started = 1234.5};
  }
  std::string Page() { return prometheus::TextSerializer().Serialize(ReadState(AllSources())); }

  World world_;
  std::vector<AdapterReading> readings_;
};

TEST_F(StateTest, PagesAreReportedByAdapterTenantPageSizeAndKind) {
  Owner owner(world_);
  const auto memory = owner.Memory(4);
  ASSERT_TRUE(owner.Register(owner.Region(), memory, 3 * kPage).ok());
  ASSERT_TRUE(owner.Register(owner.Region(), memory, 2 * kPage).ok());
  const std::string page = Page();
  const std::string labels = "{adapter=\"soft0\",tenant=\"uid/uid=1000\",page_size=\"4096\",kind=\"region\"}";
  EXPECT_THAT(page, HasSubstr("rnicd_registered_pages" + labels + " 5\n"));
  EXPECT_THAT(page, HasSubstr("rnicd_registered_bytes" + labels + " 20480\n"));
  EXPECT_THAT(page, HasSubstr("rnicd_pinned_bytes{tenant=\"uid/uid=1000\"} 12288\n")) << "each page once";
  EXPECT_THAT(page, HasSubstr("rnicd_memory_bytes{tenant=\"uid/uid=1000\"} 16384\n"));
  EXPECT_THAT(page, HasSubstr("rnicd_memory_objects{tenant=\"uid/uid=1000\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("rnicd_sessions{tenant=\"uid/uid=1000\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("rnicd_device_regions 2\n"));
  EXPECT_THAT(page, HasSubstr("rnicd_memory_regions{adapter=\"soft0\",tenant=\"uid/uid=1000\",kind=\"plain\"} 2\n"));
  EXPECT_THAT(page, HasSubstr("rnicd_registrations_total{tenant=\"uid/uid=1000\",result=\"ok\"} 2\n"));
}

TEST_F(StateTest, AMappingIsAKindOfItsOwn) {
  Owner owner(world_);
  const MdlEntry entry{.memory_id = owner.Memory(2), .byte_count = 2 * kPage, .virtual_address = {0x7f0000000000}};
  ASSERT_TRUE(owner.session->Begin()
                  ->mappings()
                  .Build({.adapter = owner.Adapter(), .chain = {&entry, 1}, .length = 2 * kPage})
                  .ok());
  EXPECT_THAT(Page(), HasSubstr("rnicd_registered_pages{adapter=\"soft0\",tenant=\"uid/uid=1000\",page_size=\"4096\","
                                "kind=\"mapping\"} 2\n"));
}

TEST_F(StateTest, WhereNobodyHoldsAnythingThereAreZeros) {
  const std::string page = Page();
  for (const char* const line :
       {"rnicd_registered_pages{adapter=\"soft0\"} 0\n", "rnicd_registered_bytes{adapter=\"soft0\"} 0\n",
        "rnicd_memory_regions{adapter=\"soft0\"} 0\n", "rnicd_pinned_bytes 0\n", "rnicd_sessions 0\n",
        "rnicd_device_regions 0\n", "rnicd_registrations_total{tenant=\"other\",result=\"ok\"} 0\n",
        "rnicd_queue_pairs{adapter=\"soft0\",state=\"ready_to_send\"} 0\n", "rnicd_pods 0\n",
        "rnicd_pods_updated_timestamp_seconds 0\n",
        "rnicd_fast_registrations_total{engine=\"native\",result=\"ok\"} 0\n"}) {
    EXPECT_THAT(page, HasSubstr(line));
  }
}

TEST_F(StateTest, TheNodeAndItsProcessAreDescribed) {
  world_.clock.Advance(std::chrono::seconds(9));
  world_.draining.store(true);
  EXPECT_THAT(Page(), HasSubstr("rnicd_policy_refused 0\n"));
  world_.tenants.SetPolicyError("line 1");
  const std::string page = Page();
  for (const char* const line :
       {"rnicd_connections 5\n", "process_start_time_seconds 1234.5\n", "rnicd_audit_lines_lost_total 2\n",
        "rnicd_audit_lines_merged_total 3\n", "rnicd_audit_lines_left_out_total 4\n",
        "rnicd_log_lines_dropped_total 6\n", "rnicd_parts_not_serving 7\n", "rnicd_draining 1\n",
        "rnicd_policy_refused 1\n", "rnicd_uptime_seconds 9\n",
        "rnicd_adapter_info{adapter=\"soft0\",provider=\"soft\",numa_node=\"-1\"} 1\n"}) {
    EXPECT_THAT(page, HasSubstr(line));
  }
  EXPECT_THAT(page, HasSubstr("\nprocess_resident_memory_bytes "));
  EXPECT_THAT(page, Not(HasSubstr("\nprocess_resident_memory_bytes 0\n")));
}

TEST_F(StateTest, AnAdaptersHealthIsWhatItsProbesFound) {
  readings_ = {{.adapter = "soft0", .healthy = true, .probes_ok = 7, .probes_failed = 1, .probe_seconds = 0.25},
               {.adapter = "soft1"}};
  const std::string page = Page();
  EXPECT_THAT(page, HasSubstr("rnicd_adapter_healthy{adapter=\"soft0\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("rnicd_adapter_healthy{adapter=\"soft1\"} 0\n"));
  EXPECT_THAT(page, HasSubstr("rnicd_adapter_probes_total{adapter=\"soft0\",result=\"ok\"} 7\n"));
  EXPECT_THAT(page, HasSubstr("rnicd_adapter_probes_total{adapter=\"soft0\",result=\"error\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("rnicd_adapter_probe_duration_seconds{adapter=\"soft0\"} 0.25\n"));
}

TEST_F(StateTest, TheTimeOfTheLastPodsIsATimeOfDay) {
  const double before = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  world_.tenants.SetPods({{.uid = "pod-1"}});
  const std::string page = Page();
  EXPECT_THAT(page, HasSubstr("rnicd_pods 1\n"));
  const std::string name = "\nrnicd_pods_updated_timestamp_seconds ";
  const double timestamp = std::stod(page.substr(page.find(name) + name.size()));
  EXPECT_NEAR(timestamp, before, 60);
}

class LimitedStateTest : public StateTest {
 protected:
  LimitedStateTest() : StateTest(Limited()) {}
  static WorldOptions Limited() {
    WorldOptions options;
    options.uid_limits[Resource::kPinnedBytes] = 1 << 20;
    options.uid_limits[Resource::kRegions] = 10;
    options.limits.node[Resource::kMemoryBytes] = 1 << 30;
    return options;
  }
};

TEST_F(LimitedStateTest, OnlyWhatHasALimitHasAQuota) {
  Owner owner(world_);
  ASSERT_TRUE(owner.Register(owner.Region(), owner.Memory(1), kPage).ok());
  const std::string page = Page();
  const std::string tenant = "{tenant=\"uid/uid=1000\",resource=";
  EXPECT_THAT(page, HasSubstr("rnicd_quota_limit_bytes" + tenant + "\"pinned_bytes\"} 1048576\n"));
  EXPECT_THAT(page, HasSubstr("rnicd_quota_used_bytes" + tenant + "\"pinned_bytes\"} 4096\n"));
  EXPECT_THAT(page, HasSubstr("rnicd_quota_limit_objects" + tenant + "\"regions\"} 10\n"));
  EXPECT_THAT(page, HasSubstr("rnicd_quota_used_objects" + tenant + "\"regions\"} 1\n"));
  EXPECT_THAT(page, Not(HasSubstr("rnicd_quota_used_bytes" + tenant + "\"memory_bytes\"")));
  EXPECT_THAT(page, HasSubstr("rnicd_node_limit_bytes{resource=\"memory_bytes\"} 1073741824\n"));
  EXPECT_THAT(page, HasSubstr("rnicd_node_used_bytes{resource=\"memory_bytes\"} 4096\n"));
  EXPECT_THAT(page, Not(HasSubstr("rnicd_node_limit_bytes{resource=\"pinned_bytes\"}")));
}

TEST_F(StateTest, TenantsBeyondTheLimitAreOne) {
  std::vector<Owner> owners;
  for (uint64_t number = 1; number <= core::kNamedTenants + 2; ++number) {
    owners.emplace_back(world_, number, static_cast<uint32_t>(number));
    ASSERT_TRUE(owners.back().Register(owners.back().Region(), owners.back().Memory(1), kPage).ok());
  }
  const std::string page = Page();
  EXPECT_THAT(page, HasSubstr("rnicd_sessions{tenant=\"other\"} 2\n"));
  EXPECT_THAT(page, HasSubstr("rnicd_pinned_bytes{tenant=\"other\"} 8192\n"));
  EXPECT_THAT(page, HasSubstr("rnicd_registrations_total{tenant=\"other\",result=\"ok\"} 2\n"));
}

core::PodFacts TrainingPod(const std::vector<std::string>& devices) {
  const core::DeviceSet set{.resource = "rnicd.io/memory-64mi", .ids = devices};
  return {.uid = "", .namespace_name = "ml", .name = "train-0", .labels = {}, .containers = {{"main", {set}}}};
}

TEST_F(StateTest, TheWorkloadOfATenantFollowsFromItsDevices) {
  const auto devices =
      std::make_shared<core::DeviceSet>(core::DeviceSet{.resource = "rnicd.io/memory-64mi", .ids = {"m-0", "m-1"}});
  ASSERT_TRUE(world_.tenants.CreateGrant({.name = "a", .devices = devices}).ok());
  const std::string covered = "{tenant=\"grant/a\",resource=\"rnicd.io/memory-64mi\"";
  EXPECT_THAT(Page(), Not(HasSubstr("rnicd_tenant_info{"))) << "not known yet";
  EXPECT_THAT(Page(), HasSubstr("rnicd_tenant_devices" + covered + "} 2\n"));
  EXPECT_THAT(Page(), HasSubstr("rnicd_device_info" + covered + ",device=\"m-1\"} 1\n"));
  world_.tenants.SetPods({TrainingPod({"m-0", "m-1"})});
  EXPECT_THAT(
      Page(),
      HasSubstr("rnicd_tenant_info{tenant=\"grant/a\",namespace=\"ml\",pod=\"train-0\",container=\"main\"} 1\n"));
}

TEST_F(StateTest, NoMoreThanAThousandDevicesAreReported) {
  core::DeviceSet devices{.resource = "rnicd.io/memory-64mi", .ids = {}};
  for (int index = 0; index < 700; ++index) {
    devices.ids.push_back("m-" + std::to_string(index));
  }
  for (const char* const name : {"a", "b"}) {
    ASSERT_TRUE(world_.tenants.CreateGrant({.name = name, .devices = std::make_shared<core::DeviceSet>(devices)}).ok());
  }
  const std::string page = Page();
  size_t series = 0;
  for (size_t at = page.find("\nrnicd_device_info{"); at != std::string::npos;
       at = page.find("\nrnicd_device_info{", at + 1)) {
    ++series;
  }
  EXPECT_EQ(series, 1000u);
  EXPECT_THAT(page, HasSubstr("rnicd_tenant_devices{tenant=\"grant/b\",resource=\"rnicd.io/memory-64mi\"} 700\n"));
}

TEST_F(StateTest, TenantsWithoutANameOfTheirOwnRunNowhere) {
  std::vector<Owner> owners;
  for (uint64_t number = 1; number <= core::kNamedTenants; ++number) {
    owners.emplace_back(world_, number, static_cast<uint32_t>(number));
  }
  const auto devices =
      std::make_shared<core::DeviceSet>(core::DeviceSet{.resource = "rnicd.io/memory-64mi", .ids = {"m-0"}});
  ASSERT_TRUE(world_.tenants.CreateGrant({.name = "a", .devices = devices}).ok());
  world_.tenants.SetPods({TrainingPod({"m-0"})});
  const std::string page = Page();
  EXPECT_THAT(page, Not(HasSubstr("rnicd_tenant_info{")));
  EXPECT_THAT(page, Not(HasSubstr("rnicd_device_info{")));
  EXPECT_THAT(page, Not(HasSubstr("rnicd_tenant_devices{")));
}

TEST_F(StateTest, RefusalsAreReportedByTenantAndReason) {
  Owner owner(world_);
  owner.session->tenant().tally()->CountRefusal(MakeError(ErrorReason::QUOTA_REGIONS));
  EXPECT_THAT(Page(), HasSubstr("rnicd_refusals_total{tenant=\"uid/uid=1000\",reason=\"quota_regions\"} 1\n"));
}

TEST_F(StateTest, DoorsAreReportedByTenant) {
  const auto grant = world_.tenants.CreateGrant({.name = "a", .door = true});
  ASSERT_TRUE(world_.tenants.CreateGrant({.name = "without"}).ok());
  core::DoorUse& door = grant->tenant->door();
  EXPECT_THAT(Page(), HasSubstr("rnicd_door_connections{tenant=\"grant/a\"} 0\n"));
  EXPECT_THAT(Page(), HasSubstr("rnicd_door_refusals_total{tenant=\"grant/a\"} 0\n"));
  door.Connected();
  door.Refused();
  door.Stormed();
  const std::string page = Page();
  EXPECT_THAT(page, HasSubstr("rnicd_door_connections{tenant=\"grant/a\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("rnicd_door_refusals_total{tenant=\"grant/a\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("rnicd_door_storms_total{tenant=\"grant/a\"} 1\n"));
  EXPECT_THAT(page, Not(HasSubstr("rnicd_door_connections{tenant=\"grant/without\"}")));
  EXPECT_THAT(page, Not(HasSubstr("rnicd_door_storms_total{tenant=\"grant/without\"}")));
}

TEST_F(StateTest, EverythingOnThePageIsInTheCatalogueWithItsLabels) {
  readings_ = {{.adapter = "soft0"}};
  Owner owner(world_);
  ASSERT_TRUE(owner.Register(owner.Region(), owner.Memory(1), kPage).ok());
  for (const prometheus::MetricFamily& family : ReadState(AllSources())) {
    const MetricRow* known = nullptr;
    for (const MetricRow& row : AllMetrics()) {
      known = family.name == row.name ? &row : known;
    }
    ASSERT_NE(known, nullptr) << family.name;
    std::set<std::vector<std::string>> seen;
    for (const prometheus::ClientMetric& sample : family.metric) {
      std::vector<std::string> key;
      for (const auto& label : sample.label) {
        EXPECT_THAT("," + std::string(known->labels) + ",", HasSubstr("," + label.name + ",")) << family.name;
        key.push_back(label.name + "=" + label.value);
      }
      EXPECT_TRUE(seen.insert(key).second) << family.name << " has a sample twice";
    }
  }
}

}  // namespace
}  // namespace rnicd::metrics
