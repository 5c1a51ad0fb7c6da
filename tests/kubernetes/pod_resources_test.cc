#include "client/kubernetes/node/pod_resources.h"

#include "tests/kubernetes/link_test.h"

namespace rnicd::test {
namespace {

using kubernetes::Holder;
using kubernetes::PodResources;
using testing::UnorderedElementsAre;

class WhoHolds : public LinkTest {
 protected:
  const PodResources resources_{pod_resources_};
};

// The kubelet lists each device separately.
TEST_F(WhoHolds, IsOneHolderForEachContainerAndResource) {
  kubelet_.Start();
  Plugin plugin(options_, {kMemory, kLarge, "example.com/other"});
  ASSERT_TRUE(Offers(kubelet_, kMemory, 4, 4));
  ASSERT_TRUE(Offers(kubelet_, kLarge, 4, 4));
  ASSERT_TRUE(Offers(kubelet_, "example.com/other", 4, 4));
  ASSERT_TRUE(kubelet_.Admit(PodWith("a", 2)).ok());
  ASSERT_TRUE(kubelet_
                  .Admit(Pod{.uid = "b",
                             .namespace_name = "team",
                             .name = "b-0",
                             .containers = {{.name = "one", .resources = {{kMemory, 1}, {kLarge, 1}}},
                                            {.name = "two", .resources = {{kMemory, 1}, {"example.com/other", 1}}},
                                            {.name = "three", .resources = {}}}})
                  .ok());
  const auto listed = resources_.List({kMemory, kLarge});
  ASSERT_TRUE(listed.ok()) << listed.status();
  EXPECT_THAT(listed->pods, UnorderedElementsAre("default/a", "team/b-0"));
  EXPECT_THAT(listed->holders,
              UnorderedElementsAre(Holder{"default", "a", "main", kMemory, {"numa0-0000", "numa0-0001"}},
                                   Holder{"team", "b-0", "one", kMemory, {"numa0-0002"}},
                                   Holder{"team", "b-0", "one", kLarge, {"numa0-0000"}},
                                   Holder{"team", "b-0", "two", kMemory, {"numa0-0003"}}));
  EXPECT_EQ(resources_.List({kLarge})->holders.size(), 1u);
  kubelet_.Remove("b");
  EXPECT_EQ(resources_.List({kMemory, kLarge})->holders.size(), 1u);
}

TEST_F(WhoHolds, IsNeverAnOrdinaryInitContainer) {
  kubelet_.Start();
  Plugin plugin(options_);
  ASSERT_TRUE(Offers(kubelet_, kMemory, 4, 4));
  ASSERT_TRUE(
      kubelet_
          .Admit(Pod{.uid = "a",
                     .namespace_name = "team",
                     .name = "a",
                     .containers = {{.name = "init", .resources = {{kMemory, 1}}, .init = true},
                                    {.name = "sidecar", .resources = {{kMemory, 2}}, .init = true, .restartable = true},
                                    {.name = "main", .resources = {}}}})
          .ok());
  const auto listed = resources_.List({kMemory});
  ASSERT_TRUE(listed.ok()) << listed.status();
  ASSERT_EQ(listed->holders.size(), 1u);
  EXPECT_EQ(listed->holders[0].container, "sidecar");
  EXPECT_THAT(listed->pods, UnorderedElementsAre("team/a"));
}

TEST_F(WhoHolds, IsUnknownWhileTheKubeletIsAwayAndKnownAtOnceAfterwards) {
  EXPECT_EQ(resources_.List({kMemory, kLarge}).status().code(), absl::StatusCode::kUnavailable);
  kubelet_.Start();
  EXPECT_TRUE(resources_.List({kMemory, kLarge}).ok());
  kubelet_.Stop();
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(resources_.List({kMemory, kLarge}).status().code(), absl::StatusCode::kUnavailable);
  }
  kubelet_.Start();
  EXPECT_TRUE(resources_.List({kMemory, kLarge}).ok());
}

// After a restart, while the API server is away, a kubelet lists no pods although their containers run.
TEST_F(WhoHolds, IsNotBelievedOfAKubeletThatDoesNotKnowTheAskingPod) {
  const kubernetes::PodResources own(pod_resources_, "default/self");
  kubelet_.Start();
  Plugin plugin(options_, {kMemory});
  ASSERT_TRUE(Offers(kubelet_, kMemory, 4, 4));
  ASSERT_TRUE(kubelet_.Admit(PodWith("a", 1)).ok());
  EXPECT_EQ(own.List({kMemory}).status().code(), absl::StatusCode::kUnavailable);
  ASSERT_TRUE(kubelet_.Admit(PodWith("self", 0)).ok());
  const auto listed = own.List({kMemory});
  ASSERT_TRUE(listed.ok()) << listed.status();
  EXPECT_EQ(listed->holders.size(), 1u);
}

}  // namespace
}  // namespace rnicd::test
