#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "client/kubernetes/kubelet/file_identity.h"
#include "tests/kubernetes/link_test.h"

namespace rnicd::test {
namespace {

namespace fs = std::filesystem;
using kubernetes::IdentityOf;

class Sockets : public LinkTest {
 protected:
  const std::string socket_ = SocketOf("memory-64mi");
};

TEST_F(Sockets, AWipedSocketComesBackAndWorks) {
  kubelet_.Start();
  Plugin plugin(options_);
  ASSERT_TRUE(Offers(kubelet_, kMemory, 4, 4));
  fs::remove(socket_);
  ASSERT_TRUE(Eventually([&] { return Accepted(kMemory) >= 2; }));
  EXPECT_TRUE(fs::is_socket(socket_));
  EXPECT_TRUE(Offers(kubelet_, kMemory, 4, 4));
  // This fails if the kubelet mistook the new registration for the one that ended.
  EXPECT_TRUE(kubelet_.Admit(PodWith("a", 1)).ok());
}

TEST_F(Sockets, StopTakesThemAway) {
  kubelet_.Start();
  Plugin plugin(options_, {kMemory, kLarge});
  ASSERT_TRUE(Up(plugin));
  plugin.link().Stop();
  EXPECT_FALSE(fs::exists(socket_));
  EXPECT_FALSE(fs::exists(SocketOf("memory-1gi")));
  EXPECT_TRUE(fs::exists(folder_ + "/kubelet.sock"));
  EXPECT_FALSE(plugin.link().registered());
}

// As in an update in which the new plugin starts before the old one exits.
TEST_F(Sockets, StopLeavesThoseOfANewerPlugin) {
  kubelet_.Start();
  auto old_plugin = std::make_unique<Plugin>(options_);
  ASSERT_TRUE(Up(*old_plugin));
  const auto old_socket = IdentityOf(socket_);
  Plugin new_plugin(options_);
  ASSERT_TRUE(Eventually([&] { return IdentityOf(socket_) != old_socket; }));
  old_plugin.reset();
  // The kubelet may see the old plugin's stream end at any time until the new one registers for the second time, and
  // takes the devices for unhealthy then.
  ASSERT_TRUE(Eventually([&] { return Accepted(kMemory) >= 3; }));
  EXPECT_TRUE(Up(new_plugin));
  EXPECT_TRUE(fs::is_socket(socket_));
  ASSERT_TRUE(Offers(kubelet_, kMemory, 4, 4));
  EXPECT_TRUE(kubelet_.Admit(PodWith("a", 1)).ok());
  EXPECT_EQ(new_plugin.allocator().allocations().size(), 1u);
}

TEST_F(Sockets, StopLeavesAFileThatTookTheirPlace) {
  kubelet_.Start();
  Plugin plugin(options_);
  ASSERT_TRUE(Up(plugin));
  kubelet_.Stop();
  fs::remove(folder_ + "/kubelet.sock");
  ASSERT_TRUE(Eventually([&] { return !plugin.link().registered(); }));
  std::ofstream(folder_ + "/other") << "other";
  fs::rename(folder_ + "/other", socket_);
  plugin.link().Stop();
  EXPECT_TRUE(fs::is_regular_file(socket_));
}

TEST_F(Sockets, AFileWithTheirNameIsReplaced) {
  kubelet_.Start();
  std::ofstream(socket_) << "in the way";
  std::ofstream(socket_ + ".new") << "in the way";
  Plugin plugin(options_);
  ASSERT_TRUE(Up(plugin));
  EXPECT_TRUE(fs::is_socket(fs::symlink_status(socket_)));
}

// A killed plugin leaves such a socket.
TEST_F(Sockets, ADeadSocketWithTheirNameIsReplaced) {
  kubelet_.Start();
  kubelet_.Stop();
  fs::rename(folder_ + "/kubelet.sock", home_.path() + "/dead.sock");
  kubelet_.Start();
  fs::rename(home_.path() + "/dead.sock", socket_);
  Plugin plugin(options_);
  EXPECT_TRUE(Up(plugin));
  EXPECT_EQ(Accepted(kMemory), 1u);
}

TEST_F(Sockets, ALinkWithTheirNameIsReplacedAndNotFollowed) {
  kubelet_.Start();
  const std::string treasure = home_.path() + "/treasure";
  std::ofstream(treasure) << "gold";
  fs::create_symlink(treasure, socket_);
  fs::create_symlink(treasure, socket_ + ".new");
  Plugin plugin(options_);
  ASSERT_TRUE(Up(plugin));
  EXPECT_TRUE(fs::is_socket(fs::symlink_status(socket_)));
  std::string left;
  std::ifstream(treasure) >> left;
  EXPECT_EQ(left, "gold");
}

TEST_F(Sockets, AFolderThatIsReplacedIsFollowed) {
  kubelet_.Start();
  Plugin plugin(options_);
  ASSERT_TRUE(Up(plugin));
  kubelet_.Stop();
  fs::remove_all(folder_);
  ASSERT_TRUE(Eventually([&] { return !plugin.link().registered(); }));
  kubelet_.Start();
  EXPECT_TRUE(Offers(kubelet_, kMemory, 4, 4));
  // The new folder is watched like the old one.
  fs::remove(socket_);
  EXPECT_TRUE(Eventually([&] { return fs::exists(socket_) && plugin.link().registered(); }));
}

TEST_F(Sockets, AFolderThatIsMovedAwayIsLeft) {
  kubelet_.Start();
  Plugin plugin(options_);
  ASSERT_TRUE(Up(plugin));
  fs::rename(folder_, home_.path() + "/elsewhere");
  ASSERT_TRUE(Eventually([&] { return !plugin.link().registered(); }));
  kubelet_.Stop();
  kubelet_.Start();
  EXPECT_TRUE(Offers(kubelet_, kMemory, 4, 4));
}

}  // namespace
}  // namespace rnicd::test
