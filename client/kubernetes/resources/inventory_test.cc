#include "client/kubernetes/resources/inventory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "client/kubernetes/resources/names_test.h"

namespace rnicd::kubernetes {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::SizeIs;

const ResourceSpec kShared{.name = kMemory, .unit_bytes = 64 * kMiB};

std::vector<Device> Plan(uint64_t units, std::vector<AdapterFacts> adapters, bool serving = true) {
  const auto plan = PlanDevices(std::span(&kShared, 1), units * 64 * kMiB, adapters, serving);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? plan->at(kMemory) : std::vector<Device>();
}

std::vector<std::string> IdsOf(const std::vector<Device>& devices) {
  std::vector<std::string> ids;
  std::transform(devices.begin(), devices.end(), std::back_inserter(ids), [](const Device& d) { return d.id; });
  return ids;
}

std::string Refusal(const std::vector<ResourceSpec>& resources, uint64_t pool_bytes) {
  const auto plan = PlanDevices(resources, pool_bytes, {}, true);
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(plan.status().message());
}

TEST(PoolBytes, IsTheLowestLimitThatThereIs) {
  EXPECT_EQ(PoolBytes(std::vector<uint64_t>{0, 300, 200, 0}, 100), 200u);
  EXPECT_EQ(PoolBytes(std::vector<uint64_t>{UINT64_MAX}, 100), UINT64_MAX);
}

TEST(PoolBytes, IsHalfOfTheMachineWithoutALimit) {
  EXPECT_EQ(PoolBytes(std::vector<uint64_t>{0, 0}, 100), 50u);
  EXPECT_EQ(PoolBytes({}, 101), 50u);
}

TEST(PlanDevices, SpreadsOverNumaNodesInAscendingOrder) {
  const auto devices = Plan(5, {{.numa_node = 10, .healthy = true}, {.numa_node = 2, .healthy = true}});
  EXPECT_THAT(devices,
              ElementsAre(Device{"numa2-0000", 2, true}, Device{"numa2-0001", 2, true}, Device{"numa2-0002", 2, true},
                          Device{"numa10-0000", 10, true}, Device{"numa10-0001", 10, true}));
}

TEST(PlanDevices, AdaptersOfOneNodeAreOneNode) {
  EXPECT_THAT(IdsOf(Plan(2, {{.numa_node = 0}, {.numa_node = 0}})), ElementsAre("numa0-0000", "numa0-0001"));
}

TEST(PlanDevices, AdaptersWithoutANodeHaveDevicesOfTheirOwn) {
  const auto devices = Plan(4, {{.numa_node = 1, .healthy = true}, {.healthy = true}, {.numa_node = -7}});
  EXPECT_THAT(devices, ElementsAre(Device{"any-0000", kNoNumaNode, true}, Device{"any-0001", kNoNumaNode, true},
                                   Device{"numa1-0000", 1, true}, Device{"numa1-0001", 1, true}));
}

TEST(PlanDevices, WithoutAdaptersAllAreUnhealthyAndWithoutANode) {
  EXPECT_THAT(Plan(2, {}), ElementsAre(Device{"any-0000", kNoNumaNode, false}, Device{"any-0001", kNoNumaNode, false}));
}

TEST(PlanDevices, ADeviceIsHealthyWhileAnAdapterOfItsNodeIs) {
  const auto devices = Plan(2, {{.numa_node = 0, .healthy = true}, {.numa_node = 0}, {.numa_node = 1}});
  EXPECT_THAT(devices, ElementsAre(Device{"numa0-0000", 0, true}, Device{"numa1-0000", 1, false}));
  const auto other_order = Plan(1, {{.numa_node = 0}, {.numa_node = 0, .healthy = true}});
  EXPECT_THAT(other_order, ElementsAre(Device{"numa0-0000", 0, true}));
}

TEST(PlanDevices, NothingIsHealthyWhileTheDaemonDoesNotServe) {
  EXPECT_THAT(Plan(2, {{.numa_node = 0, .healthy = true}}, false), Each(Field(&Device::healthy, false)));
}

// The kubelet remembers ids across restarts of the plugin.
TEST(PlanDevices, MoreCapacityKeepsAllIds) {
  const std::vector<AdapterFacts> adapters = {{.numa_node = 0}, {.numa_node = 1}, {.numa_node = 3}};
  std::vector<std::string> before;
  for (uint64_t units = 1; units <= 20; ++units) {
    std::vector<std::string> now = IdsOf(Plan(units, adapters));
    EXPECT_THAT(now, SizeIs(units));
    std::sort(now.begin(), now.end());
    EXPECT_TRUE(std::includes(now.begin(), now.end(), before.begin(), before.end())) << units;
    before = now;
  }
}

TEST(PlanDevices, AUnitThatFitsOnlyInPartIsNone) {
  const auto plan = PlanDevices(std::span(&kShared, 1), 192 * kMiB - 1, {}, true);
  ASSERT_TRUE(plan.ok());
  EXPECT_THAT(plan->at(kMemory), SizeIs(2));
}

TEST(PlanDevices, FixedCountsComeFirstAndTheOthersShareWhatIsLeft) {
  const std::vector<ResourceSpec> resources = {{.name = "a/small", .unit_bytes = 1 * kMiB},
                                               {.name = "a/fixed", .unit_bytes = 10 * kMiB, .count = 6},
                                               {.name = "a/big", .unit_bytes = 8 * kMiB}};
  const auto plan = PlanDevices(resources, 100 * kMiB, {}, true);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->at("a/fixed"), SizeIs(6));
  EXPECT_THAT(plan->at("a/small"), SizeIs(20));
  EXPECT_THAT(plan->at("a/big"), SizeIs(2));
}

TEST(PlanDevices, FixedCountsMayFillThePoolButNotMore) {
  const ResourceSpec fixed{.name = "a/fixed", .unit_bytes = 4096, .count = 10};
  EXPECT_TRUE(PlanDevices(std::span(&fixed, 1), 40960, {}, true).ok());
  EXPECT_THAT(Refusal({fixed}, 40959), HasSubstr("'a/fixed': 10 units of 4096 bytes do not fit into 40959 bytes"));
  EXPECT_THAT(Refusal({fixed, {.name = "a/second", .unit_bytes = 4096, .count = 1}}, 40960), HasSubstr("a/second"));
}

// 2^60 times 10000 is far above 2^64.
TEST(PlanDevices, FixedCountsDoNotOverflow) {
  EXPECT_THAT(Refusal({{.name = "a/fixed", .unit_bytes = 1ull << 60, .count = 10'000}}, UINT64_MAX),
              HasSubstr("do not fit"));
}

TEST(PlanDevices, AFixedCountAboveWhatTheKubeletTakesIsRefused) {
  const ResourceSpec most{.name = "a/fixed", .unit_bytes = 4096, .count = kMaxDevicesOfResource};
  EXPECT_TRUE(PlanDevices(std::span(&most, 1), UINT64_MAX, {}, true).ok());
  EXPECT_THAT(Refusal({{.name = "a/fixed", .unit_bytes = 4096, .count = kMaxDevicesOfResource + 1}}, UINT64_MAX),
              HasSubstr("more than 10000 devices"));
}

// Otherwise the defaults would fail on a machine with much memory.
TEST(PlanDevices, AShareStopsAtWhatTheKubeletTakes) {
  const auto devices = Plan(kMaxDevicesOfResource + 1, {});
  ASSERT_THAT(devices, SizeIs(kMaxDevicesOfResource));
  EXPECT_EQ(devices.back().id, "any-9999");
  EXPECT_TRUE(std::is_sorted(devices.begin(), devices.end(), [](auto& a, auto& b) { return a.id < b.id; }));
}

TEST(PlanDevices, AResourceWithoutASingleUnitIsRefused) {
  EXPECT_THAT(Refusal({kShared}, 64 * kMiB - 1), HasSubstr("not a single unit of 67108864 bytes"));
  EXPECT_THAT(Refusal({kShared, {.name = "a/b", .unit_bytes = 4096}}, 64 * kMiB), HasSubstr(kMemory));
  EXPECT_THAT(Refusal({kShared, {.name = "a/b", .unit_bytes = 4096, .count = 1}}, 4096), HasSubstr(kMemory));
}

TEST(CountOffered, LeavesOutWhatIsBeyondTheEndOfItsNode) {
  const auto devices = Plan(5, {{.numa_node = 0}, {.numa_node = 1}});
  EXPECT_EQ(CountOffered(devices, std::vector<std::string>{"numa0-0000", "numa0-0002", "numa1-0001"}), 3u);
  EXPECT_EQ(CountOffered(devices, std::vector<std::string>{"numa0-0003", "numa1-0002", "numa1-0001"}), 1u);
  EXPECT_EQ(CountOffered(devices, {}), 0u);
}

// The daemon may just have started without the card, and devices are named otherwise after a card tells its node.
TEST(CountOffered, CountsDevicesOfNodesThatAreNotThere) {
  const auto devices = Plan(1, {{.numa_node = 0}});
  EXPECT_EQ(CountOffered(devices, std::vector<std::string>{"numa1-0007", "any-0009"}), 2u);
  EXPECT_EQ(CountOffered(devices, std::vector<std::string>{"numa0", "numa0-", "numa0-x"}), 0u);
}

}  // namespace
}  // namespace rnicd::kubernetes
