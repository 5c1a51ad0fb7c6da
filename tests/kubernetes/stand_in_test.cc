// Behaviour of the stand-in that the other tests rely on.
#include <filesystem>
#include <fstream>

#include "client/kubernetes/kubelet/grpc_channel.h"
#include "kubelet/v1beta1/device_plugin.grpc.pb.h"
#include "tests/kubernetes/link_test.h"

namespace rnicd::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class StandIn : public LinkTest {
 protected:
  absl::Status Register(const std::string& version, const std::string& endpoint, const std::string& resource) {
    const auto stub = v1beta1::Registration::NewStub(kubernetes::MakeUnixChannel(folder_ + "/kubelet.sock"));
    v1beta1::RegisterRequest request;
    request.set_version(version);
    request.set_endpoint(endpoint);
    request.set_resource_name(resource);
    return kubernetes::CallUnary(*stub, &v1beta1::Registration::Stub::Register, request, kTimeout).status();
  }
};

TEST_F(StandIn, RefusesOtherVersions) {
  kubelet_.Start();
  const absl::Status status = Register("v1alpha", "x.sock", kMemory);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnknown);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("requested API version \"v1alpha\" is not supported by kubelet. Supported version is "));
}

TEST_F(StandIn, RefusesWhatIsNoExtendedResource) {
  kubelet_.Start();
  for (const char* const name : {"memory", "kubernetes.io/memory", "requests.rnicd.io/memory", "rnicd.io/", "a/b/c"}) {
    EXPECT_THAT(std::string(Register("v1beta1", "x.sock", name).message()),
                HasSubstr("the ResourceName \"" + std::string(name) + "\" is invalid"));
  }
}

TEST_F(StandIn, RefusesAPluginThatDoesNotServe) {
  Kubelet impatient({.folder = folder_, .dial_deadline = std::chrono::milliseconds(0)});
  impatient.Start();
  EXPECT_THAT(std::string(Register("v1beta1", "absent.sock", kMemory).message()),
              HasSubstr("failed to dial device plugin"));
  EXPECT_FALSE(impatient.NodeStatus(kMemory).has_value());
}

TEST_F(StandIn, WipesSocketsAndNothingElse) {
  Plugin plugin(options_);
  kubelet_.Start();
  ASSERT_TRUE(Up(plugin));
  plugin.link().Stop();
  kubelet_.Stop();
  // A socket as left by a killed kubelet.
  ASSERT_TRUE(fs::is_socket(folder_ + "/kubelet.sock"));
  fs::rename(folder_ + "/kubelet.sock", folder_ + "/somebody.sock");
  std::ofstream(folder_ + "/file") << "kept";
  fs::create_symlink(folder_ + "/somebody.sock", folder_ + "/link");
  kubelet_.Start();
  EXPECT_FALSE(fs::exists(folder_ + "/somebody.sock"));
  EXPECT_TRUE(fs::exists(folder_ + "/file"));
  EXPECT_TRUE(fs::is_symlink(folder_ + "/link"));
  EXPECT_TRUE(fs::exists(folder_ + "/kubelet.sock"));
}

TEST_F(StandIn, KnowsNoHealthyDeviceAfterARestartUntilThePluginIsBack) {
  kubelet_.Start();
  {
    Plugin plugin(options_);
    ASSERT_TRUE(Offers(kubelet_, kMemory, 4, 4));
  }
  kubelet_.Stop();
  kubelet_.Start();
  EXPECT_EQ(kubelet_.NodeStatus(kMemory), (Kubelet::Amounts{.capacity = 0, .allocatable = 0}));
  EXPECT_THAT(std::string(kubelet_.Admit(PodWith("a", 1)).message()), HasSubstr("no healthy devices present"));
  kubelet_.Advance(std::chrono::minutes(6));
  EXPECT_FALSE(kubelet_.NodeStatus(kMemory).has_value());
}

TEST_F(StandIn, AdmitsRunningPodsAgainAndOthersOnlyWithTheirPlugin) {
  kubelet_.Start();
  auto plugin = std::make_unique<Plugin>(options_);
  ASSERT_TRUE(Offers(kubelet_, kMemory, 4, 4));
  for (const char* const name : {"a", "b"}) {
    ASSERT_TRUE(kubelet_.Admit(PodWith(name, 1)).ok());
    ASSERT_TRUE(kubelet_.StartContainer(name, "main").ok());
  }
  const std::vector<std::string> held = kubelet_.Held("a", "main", kMemory);
  plugin.reset();
  kubelet_.Stop();
  kubelet_.Start();
  EXPECT_TRUE(kubelet_.Readmit("a").ok()) << "it runs";
  kubelet_.StopNode();
  kubelet_.Start();
  EXPECT_THAT(std::string(kubelet_.Readmit("b").message()),
              HasSubstr("UnexpectedAdmissionError: Allocate failed due to no healthy devices present"));
  plugin = std::make_unique<Plugin>(options_);
  ASSERT_TRUE(Offers(kubelet_, kMemory, 4, 4));
  EXPECT_TRUE(kubelet_.Readmit("a").ok());
  EXPECT_EQ(kubelet_.Held("a", "main", kMemory), held);
  EXPECT_TRUE(plugin->allocator().allocations().empty()) << "the checkpoint has the response";
}

TEST_F(StandIn, CallsThePluginAtTheMomentsOfARealOne) {
  kubelet_.Start();
  Plugin plugin(options_);
  ASSERT_TRUE(Offers(kubelet_, kMemory, 4, 4));
  ASSERT_TRUE(kubelet_
                  .Admit(Pod{.uid = "a",
                             .namespace_name = "default",
                             .name = "a",
                             .containers = {{.name = "init", .resources = {{kMemory, 2}}, .init = true},
                                            {.name = "main", .resources = {{kMemory, 2}}}}})
                  .ok());
  ASSERT_TRUE(kubelet_.StartContainer("a", "init").ok());
  ASSERT_TRUE(kubelet_.StartContainer("a", "main").ok());
  EXPECT_THAT(kubelet_.calls(), testing::ElementsAre("GetPreferredAllocation", "Allocate", "Allocate",
                                                     "PreStartContainer", "PreStartContainer"))
      << "devices that are reused are not chosen";
}

TEST_F(StandIn, ChoosesAnyOfTwoMountsAtOnePath) {
  kubelet_.Start();
  Plugin plugin(options_, {kMemory, kLarge});
  ASSERT_TRUE(Offers(kubelet_, kMemory, 4, 4));
  ASSERT_TRUE(Offers(kubelet_, kLarge, 4, 4));
  ASSERT_TRUE(kubelet_
                  .Admit(Pod{.uid = "a",
                             .namespace_name = "default",
                             .name = "a",
                             .containers = {{.name = "main", .resources = {{kMemory, 1}, {kLarge, 1}}}}})
                  .ok());
  const auto first = kubelet_.StartContainer("a", "main");
  const auto second = kubelet_.StartContainer("a", "main");
  ASSERT_TRUE(first.ok() && second.ok());
  ASSERT_EQ(first->mounts.size(), 1u);
  ASSERT_EQ(second->mounts.size(), 1u);
  EXPECT_NE(first->mounts[0].host_path(), second->mounts[0].host_path());
}

TEST_F(StandIn, BacksOffFromAContainerWhosePluginFails) {
  kubelet_.Start();
  Plugin plugin(options_);
  ASSERT_TRUE(Offers(kubelet_, kMemory, 4, 4));
  ASSERT_TRUE(kubelet_.Admit(PodWith("a", 1)).ok());
  plugin.allocator().Fail(absl::UnavailableError("no daemon"));
  EXPECT_THAT(std::string(kubelet_.StartContainer("a", "main").status().message()), HasSubstr("no daemon"));
  plugin.allocator().Fail(absl::OkStatus());
  EXPECT_THAT(std::string(kubelet_.StartContainer("a", "main").status().message()), HasSubstr("back-off"));
  kubelet_.Advance(std::chrono::seconds(10));
  EXPECT_TRUE(kubelet_.StartContainer("a", "main").ok());
}

TEST_F(StandIn, StartsNothingThatItLostFromItsCheckpoint) {
  kubelet_.Start();
  Plugin plugin(options_);
  ASSERT_TRUE(Offers(kubelet_, kMemory, 4, 4));
  ASSERT_TRUE(kubelet_.Admit(PodWith("a", 1)).ok());
  ASSERT_TRUE(kubelet_.StartContainer("a", "main").ok());
  kubelet_.Stop();
  kubelet_.LoseCheckpoint();
  kubelet_.Start();
  ASSERT_TRUE(Offers(kubelet_, kMemory, 4, 4));
  EXPECT_THAT(std::string(kubelet_.StartContainer("a", "main").status().message()),
              HasSubstr("no devices found allocated in local cache"));
}

TEST_F(StandIn, AdmitsNothingForAResourceThatIsNotRegistered) {
  kubelet_.Start();
  EXPECT_THAT(std::string(kubelet_.Admit(PodWith("a", 1)).message()), HasSubstr("cannot allocate unregistered device"));
}

}  // namespace
}  // namespace rnicd::test
