#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>

#include "base/files/unique_fd.h"
#include "tests/kubernetes/link_test.h"
#include "tests/support/process/pipe_reader.h"

namespace rnicd::test {
namespace {

class Registering : public LinkTest {};

// Reads the lines that this process logs, while it exists.
class OwnLines {
 public:
  OwnLines() : previous_(dup(STDERR_FILENO)) {
    int ends[2] = {-1, -1};
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    const UniqueFd writer(ends[1]);
    dup2(writer.get(), STDERR_FILENO);
    reader_ = std::make_unique<PipeReader>(UniqueFd(ends[0]));
  }
  ~OwnLines() { dup2(previous_.get(), STDERR_FILENO); }

  bool Have(const std::string& text) { return reader_->WaitFor(text, kTimeout); }

 private:
  const UniqueFd previous_;
  std::unique_ptr<PipeReader> reader_;
};

// The stand-in connects to the plugin before Register returns, so this passes only if the plugin served before it
// registered.
TEST_F(Registering, ServesBeforeItRegisters) {
  kubelet_.Start();
  Plugin plugin(options_);
  ASSERT_TRUE(Up(plugin));
  ASSERT_EQ(kubelet_.registrations().size(), 1u);
  EXPECT_EQ(kubelet_.registrations()[0].resource, kMemory);
  EXPECT_EQ(kubelet_.registrations()[0].endpoint, "rnicd-memory-64mi.sock");
  EXPECT_EQ(kubelet_.registrations()[0].error, "");
  EXPECT_TRUE(Offers(kubelet_, kMemory, 4, 4));
}

TEST_F(Registering, OffersAllResourcesOnSocketsOfTheirOwn) {
  kubelet_.Start();
  Plugin plugin(options_, {kMemory, kLarge});
  ASSERT_TRUE(Up(plugin));
  plugin.board(kLarge).Set(Devices(2));
  EXPECT_TRUE(Offers(kubelet_, kMemory, 4, 4));
  EXPECT_TRUE(Offers(kubelet_, kLarge, 2, 2));
  EXPECT_TRUE(std::filesystem::is_socket(SocketOf("memory-64mi")));
  EXPECT_TRUE(std::filesystem::is_socket(SocketOf("memory-1gi")));
}

TEST_F(Registering, IsNotRegisteredWhileOneResourceIsNot) {
  kubelet_.Start();
  Plugin plugin(options_, {kMemory, "rnicd.io/-wrong"});
  EXPECT_TRUE(Offers(kubelet_, kMemory, 4, 4));
  EXPECT_FALSE(plugin.link().registered());
}

TEST_F(Registering, WaitsForAKubeletThatStartsLater) {
  std::filesystem::create_directory(folder_);
  OwnLines lines;
  Plugin plugin(options_);
  ASSERT_TRUE(lines.Have("waiting for the kubelet"));
  kubelet_.Start();
  EXPECT_TRUE(Up(plugin));
}

TEST_F(Registering, WaitsForAFolderThatIsNotThere) {
  OwnLines lines;
  Plugin plugin(options_);
  ASSERT_TRUE(lines.Have("the kubelet's folder is not there"));
  kubelet_.Start();
  EXPECT_TRUE(Up(plugin));
}

TEST_F(Registering, TriesARefusingKubeletAgain) {
  kubelet_.Start();
  kubelet_.RefuseRegistrations("not today");
  Plugin plugin(options_);
  ASSERT_TRUE(Eventually([&] { return kubelet_.registrations().size() >= 2; }));
  EXPECT_EQ(kubelet_.registrations()[0].error, "not today");
  EXPECT_FALSE(plugin.link().registered());
  kubelet_.RefuseRegistrations("");
  EXPECT_TRUE(Up(plugin));
}

// Like a process stopped by a signal: connections are accepted, and no call is answered.
TEST_F(Registering, StopDoesNotWaitForAKubeletThatDoesNotAnswer) {
  std::filesystem::create_directory(folder_);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  (folder_ + "/kubelet.sock").copy(address.sun_path, sizeof(address.sun_path) - 1);
  const UniqueFd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(listen(listener.get(), 8), 0);
  options_.register_deadline = std::chrono::minutes(10);
  Plugin plugin(options_);
  ASSERT_TRUE(Eventually([&] { return std::filesystem::is_socket(SocketOf("memory-64mi")); }));
  const auto begin = std::chrono::steady_clock::now();
  plugin.link().Stop();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kTimeout);
  EXPECT_FALSE(std::filesystem::exists(SocketOf("memory-64mi")));
}

TEST_F(Registering, ANewDeviceAndALostHealthReachTheKubelet) {
  kubelet_.Start();
  Plugin plugin(options_);
  ASSERT_TRUE(Offers(kubelet_, kMemory, 4, 4));
  plugin.board().Set(Devices(5, /*healthy=*/false));
  EXPECT_TRUE(Offers(kubelet_, kMemory, 5, 0));
  plugin.board().Set(Devices(5));
  EXPECT_TRUE(Offers(kubelet_, kMemory, 5, 5));
  EXPECT_EQ(kubelet_.registrations().size(), 1u);
}

TEST_F(Registering, TellsTheNumaNodeOfADeviceThatHasOne) {
  kubelet_.Start();
  Plugin plugin(options_);
  plugin.board().Set({{.id = "any-0000", .healthy = true}, {.id = "numa1-0000", .numa_node = 1, .healthy = true}});
  ASSERT_TRUE(Offers(kubelet_, kMemory, 2, 2));
  const std::vector<v1beta1::Device> devices = kubelet_.Devices(kMemory);
  EXPECT_FALSE(devices[0].has_topology());
  ASSERT_EQ(devices[1].topology().nodes_size(), 1);
  EXPECT_EQ(devices[1].topology().nodes(0).id(), 1);
}

TEST_F(Registering, RefusesPathsThatAreTooLongForASocket) {
  const log::Logger logger{{}};
  FakeAllocator allocator;
  kubernetes::DeviceBoard board;
  options_.folder = "/tmp/" + std::string(90, 'x');
  kubernetes::KubeletLink link(options_, {{.name = kMemory, .board = &board}}, allocator, logger);
  EXPECT_EQ(link.Start().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(Registering, RefusesTwoResourcesThatWouldShareASocket) {
  const log::Logger logger{{}};
  FakeAllocator allocator;
  kubernetes::DeviceBoard board;
  kubernetes::KubeletLink link(options_, {{.name = "a.io/x", .board = &board}, {.name = "b.io/x", .board = &board}},
                               allocator, logger);
  EXPECT_EQ(link.Start().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace rnicd::test
