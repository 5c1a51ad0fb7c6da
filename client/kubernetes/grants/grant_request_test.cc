#include "client/kubernetes/grants/grant_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/kubernetes/resources/names_test.h"

namespace rnicd::kubernetes {
namespace {

using testing::ElementsAre;

const ResourceSpec kMemoryResource{.name = "rnicd.io/memory-64mi", .unit_bytes = 64 * kMiB};

TEST(GrantNameFor, SaysWhatTheGrantIsFor) {
  EXPECT_EQ(GrantNameFor("rnicd.io/memory-64mi", "numa0-0000", 0x5555'5555'3f2a'91bc),
            "memory-64mi/numa0-0000/3f2a91bc");
  EXPECT_EQ(GrantNameFor("rnicd.io/memory-64mi", "any-0001", 1), "memory-64mi/any-0001/00000001");
}

TEST(GrantNameFor, IsNoLongerThanTheDaemonTakes) {
  const std::string name = GrantNameFor("a/" + std::string(63, 't'), std::string(63, 'd'), 0);
  EXPECT_EQ(name, "tttttttttttttttttttttttt/dddddddddddddddddddd/00000000");
  EXPECT_LE(name.size(), 63u);
}

TEST(GrantNameFor, HasOnlyCharactersThatTheDaemonTakes) {
  EXPECT_EQ(GrantNameFor("a/B_c.d-1", "x:y z/\n\xff", 0), "B_c.d-1/x-y-z---/00000000");
}

TEST(LimitsFor, BytesAreThoseOfTheDevices) {
  v1::ResourceLimits base;
  base.set_regions(7);
  base.set_pinned_bytes(1);
  const auto limits = LimitsFor(base, kMemoryResource, 3, 4);
  ASSERT_TRUE(limits.ok());
  EXPECT_EQ(limits->pinned_bytes(), 192 * kMiB);
  EXPECT_EQ(limits->memory_bytes(), 192 * kMiB);
  EXPECT_EQ(limits->registered_bytes(), 768 * kMiB);
  EXPECT_EQ(limits->regions(), 7u);
}

TEST(LimitsFor, MoreDevicesNeedMoreOfTheDaemonsMemory) {
  v1::ResourceLimits base;
  EXPECT_EQ(LimitsFor(base, kMemoryResource, 4, 1)->heap_bytes(), 0u) << "no limit stays none";
  base.set_heap_bytes(kMiB);
  EXPECT_EQ(LimitsFor(base, kMemoryResource, 4, 1)->heap_bytes(), 2 * kMiB);
  base.set_heap_bytes(UINT64_MAX);
  EXPECT_EQ(LimitsFor(base, kMemoryResource, 4, 1)->heap_bytes(), UINT64_MAX - 4095);
}

// 0 bytes would mean no limit.
TEST(LimitsFor, NoDevicesAreRefused) {
  EXPECT_EQ(LimitsFor({}, kMemoryResource, 0, 4).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(LimitsFor({}, {.name = "a/b"}, 1, 4).ok());
}

TEST(LimitsFor, MoreBytesThanCanBeCountedAreRefused) {
  const ResourceSpec huge{.name = "a/b", .unit_bytes = 1ull << 62};
  EXPECT_TRUE(LimitsFor({}, huge, 3, 1).ok());
  EXPECT_FALSE(LimitsFor({}, huge, 4, 1).ok());
}

TEST(LimitsFor, RegisteredBytesStopAtWholePages) {
  EXPECT_EQ(LimitsFor({}, {.name = "a/b", .unit_bytes = 1ull << 62}, 2, 4)->registered_bytes(), UINT64_MAX - 4095);
}

TEST(RenewalOf, AsksForThatVeryGrant) {
  GrantRecord record{.grant_id = 9, .secret_sha256 = std::string(32, 'x'), .name = "n", .resource = "a/b"};
  record.device_ids = {"d1", "d2"};
  record.limits.set_regions(5);
  const v1::CreateGrantRequest request = RenewalOf(record, 4096, {});
  EXPECT_EQ(request.renewal().grant_id(), 9u);
  EXPECT_EQ(request.renewal().secret_sha256(), record.secret_sha256);
  EXPECT_EQ(request.name(), "n");
  EXPECT_EQ(request.limits().regions(), 5u);
  EXPECT_EQ(request.devices().resource_name(), "a/b");
  EXPECT_THAT(request.devices().device_ids(), ElementsAre("d1", "d2"));
  EXPECT_FALSE(request.door());
  EXPECT_FALSE(RequestFor(record, {}).has_renewal());
  record.has_door = true;
  EXPECT_TRUE(RenewalOf(record, 4096, {}).door());
}

TEST(RenewalOf, IsForNoMoreThanTheNodeOffers) {
  const ResourceSpec resource{.name = "a/b", .unit_bytes = 64 << 20};
  const GrantRecord record{.grant_id = 9, .limits = *LimitsFor({}, resource, 4, 3)};
  const v1::ResourceLimits limits = RenewalOf(record, 64 << 20, {}).limits();
  EXPECT_EQ(limits.pinned_bytes(), 64u << 20);
  EXPECT_EQ(limits.memory_bytes(), 64u << 20);
  EXPECT_EQ(limits.registered_bytes(), 192u << 20);
  EXPECT_EQ(RenewalOf(record, 512 << 20, {}).limits().pinned_bytes(), 256u << 20) << "a grown pool makes no grant grow";
  const GrantRecord huge{.grant_id = 9, .limits = *LimitsFor({}, {.name = "a/b", .unit_bytes = 1ull << 62}, 2, 4)};
  EXPECT_EQ(RenewalOf(huge, 1ull << 62, {}).limits().registered_bytes(), 1ull << 62);
}

TEST(RecordOf, IsAsTheDaemonSays) {
  v1::GrantInfo info;
  info.set_grant_id(9);
  info.set_tenant("grant/memory-64mi/any-0000/00000001");
  info.set_age_ms(400);
  info.mutable_limits()->set_regions(5);
  info.mutable_devices()->set_resource_name("a/b");
  info.mutable_devices()->add_device_ids("any-0000");
  const GrantRecord record = RecordOf(info, 1000);
  EXPECT_EQ(record.grant_id, 9u);
  EXPECT_EQ(record.name, "memory-64mi/any-0000/00000001");
  EXPECT_EQ(record.resource, "a/b");
  EXPECT_THAT(record.device_ids, ElementsAre("any-0000"));
  EXPECT_EQ(record.limits.regions(), 5u);
  EXPECT_EQ(record.made_ms, 600);
  EXPECT_EQ(record.secret_sha256, "");
  EXPECT_FALSE(record.has_door);
  info.mutable_door();
  EXPECT_TRUE(RecordOf(info, 1000).has_door);
  EXPECT_EQ(RecordOf(info, 300).made_ms, 0);
}

}  // namespace
}  // namespace rnicd::kubernetes
