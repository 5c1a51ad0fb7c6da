#include <memory>

#include "client/kubernetes/kubelet/file_identity.h"
#include "tests/kubernetes/link_test.h"

namespace rnicd::test {
namespace {

using kubernetes::IdentityOf;

class Restarting : public LinkTest {};

TEST_F(Restarting, AKubeletThatRestartsHasItsResourcesBackWithoutAPoll) {
  kubelet_.Start();
  Plugin plugin(options_, {kMemory, kLarge});
  ASSERT_TRUE(Offers(kubelet_, kMemory, 4, 4));
  ASSERT_TRUE(Offers(kubelet_, kLarge, 4, 4));
  const auto old_socket = IdentityOf(SocketOf("memory-64mi"));
  kubelet_.Stop();
  kubelet_.Start();
  ASSERT_TRUE(Offers(kubelet_, kMemory, 4, 4));
  ASSERT_TRUE(Offers(kubelet_, kLarge, 4, 4));
  EXPECT_TRUE(Up(plugin));
  EXPECT_NE(IdentityOf(SocketOf("memory-64mi")), old_socket);
}

TEST_F(Restarting, AKubeletMayRestartManyTimes) {
  kubelet_.Start();
  Plugin plugin(options_);
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(Offers(kubelet_, kMemory, 4, 4)) << i;
    kubelet_.Stop();
    kubelet_.Start();
  }
  EXPECT_TRUE(Offers(kubelet_, kMemory, 4, 4));
  EXPECT_TRUE(Up(plugin));
}

TEST_F(Restarting, PodsKeepWhatTheyHaveOverARestartOfTheKubelet) {
  kubelet_.Start();
  Plugin plugin(options_);
  ASSERT_TRUE(Offers(kubelet_, kMemory, 4, 4));
  ASSERT_TRUE(kubelet_.Admit(PodWith("a", 3)).ok());
  const std::vector<std::string> held = kubelet_.Held("a", "main", kMemory);
  kubelet_.Stop();
  kubelet_.Start();
  ASSERT_TRUE(Offers(kubelet_, kMemory, 4, 4));
  EXPECT_EQ(kubelet_.Held("a", "main", kMemory), held);
  EXPECT_EQ(plugin.allocator().allocations().size(), 1u);
  const absl::StatusOr<RunOptions> options = kubelet_.StartContainer("a", "main");
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->mounts.at(0).host_path(), "/doors/rnicd.io/memory-64mi/1");
  EXPECT_FALSE(kubelet_.Admit(PodWith("b", 2)).ok());
}

TEST_F(Restarting, AStreamThatTheKubeletEndsIsARegistrationAgain) {
  kubelet_.Start();
  Plugin plugin(options_);
  ASSERT_TRUE(Offers(kubelet_, kMemory, 4, 4));
  kubelet_.DropStreams(kMemory);
  ASSERT_TRUE(Eventually([&] { return Accepted(kMemory) >= 2; }));
  EXPECT_TRUE(Offers(kubelet_, kMemory, 4, 4));
  EXPECT_TRUE(Up(plugin));
  EXPECT_TRUE(kubelet_.Admit(PodWith("a", 1)).ok());
}

// The devices keep their ids, and running pods keep their devices.
TEST_F(Restarting, APluginThatRestartsIsBackAtOnce) {
  // Any pause would be too long.
  options_.first_retry = options_.poll_interval;
  kubelet_.Start();
  auto plugin = std::make_unique<Plugin>(options_);
  ASSERT_TRUE(Offers(kubelet_, kMemory, 4, 4));
  ASSERT_TRUE(kubelet_.Admit(PodWith("a", 2)).ok());
  const std::vector<std::string> held = kubelet_.Held("a", "main", kMemory);
  plugin.reset();
  ASSERT_TRUE(Offers(kubelet_, kMemory, 4, 0));
  EXPECT_FALSE(kubelet_.Admit(PodWith("unlucky", 1)).ok());
  plugin = std::make_unique<Plugin>(options_);
  ASSERT_TRUE(Offers(kubelet_, kMemory, 4, 4));
  EXPECT_EQ(kubelet_.Held("a", "main", kMemory), held);
  EXPECT_TRUE(kubelet_.Admit(PodWith("b", 2)).ok());
}

TEST_F(Restarting, AResourceWhosePluginStaysAwayIsForgottenAfterItsGrace) {
  kubelet_.Start();
  auto plugin = std::make_unique<Plugin>(options_);
  ASSERT_TRUE(Offers(kubelet_, kMemory, 4, 4));
  plugin.reset();
  ASSERT_TRUE(Offers(kubelet_, kMemory, 4, 0));
  kubelet_.Advance(std::chrono::minutes(4));
  EXPECT_TRUE(kubelet_.NodeStatus(kMemory).has_value());
  kubelet_.Advance(std::chrono::minutes(2));
  EXPECT_FALSE(kubelet_.NodeStatus(kMemory).has_value());
  plugin = std::make_unique<Plugin>(options_);
  EXPECT_TRUE(Offers(kubelet_, kMemory, 4, 4));
}

}  // namespace
}  // namespace rnicd::test
