#include <fstream>
#include <iterator>

#include "tests/kubernetes/link_test.h"

namespace rnicd::test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::Not;
using testing::Pair;

class Pods : public LinkTest {
 protected:
  void SetUp() override {
    kubelet_.Start();
    ASSERT_TRUE(Offers(kubelet_, kMemory, 4, 4));
  }

  Plugin plugin_{options_};
};

TEST_F(Pods, GetWhatTheAllocatorGives) {
  ASSERT_TRUE(kubelet_.Admit(PodWith("a", 2)).ok());
  ASSERT_EQ(plugin_.allocator().allocations().size(), 1u);
  EXPECT_EQ(plugin_.allocator().allocations()[0], kubelet_.Held("a", "main", kMemory));
  const absl::StatusOr<RunOptions> options = kubelet_.StartContainer("a", "main");
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_THAT(options->environment, ElementsAre(Pair("RNICD_SOCKET_DIR", "/run/rnicd")));
  ASSERT_EQ(options->mounts.size(), 1u);
  EXPECT_EQ(options->mounts[0].container_path(), "/run/rnicd");
  EXPECT_EQ(options->mounts[0].host_path(), "/doors/rnicd.io/memory-64mi/1");
  EXPECT_TRUE(options->mounts[0].read_only());
}

// Without a preference the stand-in takes the highest ids.
TEST_F(Pods, GetTheDevicesThatThePluginPrefers) {
  ASSERT_TRUE(kubelet_.Admit(PodWith("a", 2)).ok());
  EXPECT_THAT(kubelet_.Held("a", "main", kMemory), ElementsAre("numa0-0000", "numa0-0001"));
}

TEST_F(Pods, AreNotAdmittedWithoutEnoughDevices) {
  ASSERT_TRUE(kubelet_.Admit(PodWith("a", 3)).ok());
  const absl::Status status = kubelet_.Admit(PodWith("b", 2));
  EXPECT_THAT(std::string(status.message()), HasSubstr("UnexpectedAdmissionError: Allocate failed due to requested "
                                                       "number of devices unavailable for rnicd.io/memory-64mi. "
                                                       "Requested: 2, Available: 1"));
  EXPECT_TRUE(kubelet_.Admit(PodWith("c", 1)).ok());
}

TEST_F(Pods, FreeTheirDevicesWhenTheyGo) {
  ASSERT_TRUE(kubelet_.Admit(PodWith("a", 4)).ok());
  EXPECT_FALSE(kubelet_.Admit(PodWith("b", 1)).ok());
  kubelet_.Remove("a");
  EXPECT_TRUE(kubelet_.Admit(PodWith("c", 4)).ok());
}

TEST_F(Pods, AreToldWhyTheAllocatorFailed) {
  plugin_.allocator().Fail(absl::ResourceExhaustedError("the daemon has no room"));
  const absl::Status status = kubelet_.Admit(PodWith("a", 1));
  EXPECT_THAT(std::string(status.message()), HasSubstr("rpc error: code = 8 desc = the daemon has no room"));
  plugin_.allocator().Fail(absl::OkStatus());
  EXPECT_TRUE(kubelet_.Admit(PodWith("b", 4)).ok());
}

TEST_F(Pods, HaveTheirContainersPreparedBeforeEachStartAndAllocatedOnce) {
  ASSERT_TRUE(kubelet_.Admit(PodWith("a", 2)).ok());
  ASSERT_TRUE(kubelet_.StartContainer("a", "main").ok());
  ASSERT_TRUE(kubelet_.StartContainer("a", "main").ok());
  EXPECT_EQ(plugin_.allocator().allocations().size(), 1u);
  const std::vector<std::string> held = kubelet_.Held("a", "main", kMemory);
  EXPECT_THAT(plugin_.allocator().preparations(), ElementsAre(held, held));
  plugin_.allocator().Fail(absl::FailedPreconditionError("the grant is gone"));
  const absl::StatusOr<RunOptions> options = kubelet_.StartContainer("a", "main");
  EXPECT_THAT(std::string(options.status().message()), HasSubstr("the grant is gone"));
}

// Devices of the init container are reused; the rest is added.
TEST_F(Pods, PassTheDevicesOfInitContainersOn) {
  const Pod pod{.uid = "a",
                .namespace_name = "default",
                .name = "a",
                .containers = {{.name = "init", .resources = {{kMemory, 1}}, .init = true},
                               {.name = "main", .resources = {{kMemory, 2}}}}};
  ASSERT_TRUE(kubelet_.Admit(pod).ok());
  EXPECT_EQ(plugin_.allocator().allocations().size(), 2u);
  EXPECT_THAT(kubelet_.Held("a", "main", kMemory), IsSupersetOf(kubelet_.Held("a", "init", kMemory)));
  EXPECT_TRUE(kubelet_.Admit(PodWith("b", 2)).ok());
}

TEST_F(Pods, KeepTheDevicesOfASidecarFromItsNeighbours) {
  const Pod pod{.uid = "a",
                .namespace_name = "default",
                .name = "a",
                .containers = {{.name = "init", .resources = {{kMemory, 1}}, .init = true},
                               {.name = "sidecar", .resources = {{kMemory, 1}}, .init = true, .restartable = true},
                               {.name = "main", .resources = {{kMemory, 2}}}}};
  ASSERT_TRUE(kubelet_.Admit(pod).ok());
  EXPECT_EQ(kubelet_.Held("a", "sidecar", kMemory), kubelet_.Held("a", "init", kMemory));
  EXPECT_THAT(kubelet_.Held("a", "main", kMemory), Not(Contains(kubelet_.Held("a", "sidecar", kMemory).at(0))));
  EXPECT_TRUE(kubelet_.Admit(PodWith("b", 1)).ok());
  EXPECT_FALSE(kubelet_.Admit(PodWith("c", 1)).ok());
}

TEST_F(Pods, AreInTheCheckpointAsKubernetesWritesIt) {
  ASSERT_TRUE(kubelet_.Admit(PodWith("a", 1)).ok());
  std::ifstream file(folder_ + "/kubelet_internal_checkpoint");
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_THAT(text, HasSubstr("\"PodUID\":\"a\""));
  EXPECT_THAT(text, HasSubstr("\"DeviceIDs\":{\"-1\":[\"numa0-0000\"]}"));
}

}  // namespace
}  // namespace rnicd::test
