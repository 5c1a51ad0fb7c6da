#include "client/cpp/objects/convert.h"

#include "gtest/gtest.h"

namespace rnicd::inline client {
namespace {

TEST(Convert, AdaptersKeepNameProviderAndNode) {
  v1::AdapterSummary wire;
  wire.set_name("soft0");
  wire.set_provider("soft");
  wire.set_numa_node(-1);
  wire.mutable_info()->set_max_registration_size(1U << 30);
  const AdapterSummary adapter = FromWire(wire);
  EXPECT_EQ(adapter.name, "soft0");
  EXPECT_EQ(adapter.provider, "soft");
  EXPECT_EQ(adapter.numa_node, -1);
  EXPECT_EQ(adapter.info.max_registration_size, 1U << 30);
}

TEST(Convert, SessionsKeepTheirResourcesWithUseAndLimit) {
  v1::GetSessionResponse wire;
  wire.set_session_id(7);
  wire.set_label("mine");
  wire.add_resources()->set_name("regions");
  wire.mutable_resources(0)->set_used(3);
  wire.mutable_resources(0)->set_limit(1000);
  const SessionUse use = FromWire(wire);
  EXPECT_EQ(use.id, SessionId{7});
  EXPECT_EQ(use.label, "mine");
  ASSERT_EQ(use.resources.size(), 1u);
  EXPECT_EQ(use.resources.front().name, "regions");
  EXPECT_EQ(use.resources.front().used, 3u);
  EXPECT_EQ(use.resources.front().limit, 1000u);
}

}  // namespace
}  // namespace rnicd::inline client
