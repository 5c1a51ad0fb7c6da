#include "daemon/app/host/service_manager_linux.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <filesystem>

namespace rnicd::app {
namespace {

using std::chrono::seconds;

// The manager's end. Its descriptor does not block: what was sent is there.
class ServiceManagerTest : public ::testing::Test {
 protected:
  void Listen(const std::string& name) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    name.copy(address.sun_path, sizeof(address.sun_path));
    if (name[0] == '@') {
      address.sun_path[0] = '\0';
    }
    socket_ = UniqueFd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    ASSERT_EQ(bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address),
                   static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size())),
              0);
  }
  // The next message; empty when there is none.
  std::string Next() {
    std::array<char, 512> bytes;
    const ssize_t count = recv(socket_.get(), bytes.data(), bytes.size(), 0);
    return count < 0 ? std::string() : std::string(bytes.data(), static_cast<size_t>(count));
  }

  static Instant At(seconds time) { return Instant(time); }

  UniqueFd socket_;
};

TEST_F(ServiceManagerTest, IsToldThatItServesReloadsAndStops) {
  const std::string path = std::filesystem::temp_directory_path() / ("rnicd-notify-" + std::to_string(getpid()));
  Listen(path);
  ServiceManager manager({.socket = path});
  manager.Serves("serves");
  EXPECT_EQ(Next(), "READY=1\nSTATUS=serves\n");
  manager.Reloads(At(seconds(7)));
  EXPECT_EQ(Next(), "RELOADING=1\nMONOTONIC_USEC=7000000\nSTATUS=reads the policy\n");
  manager.SetStatus("rpc loop 1 has not answered for 7 s");
  EXPECT_EQ(Next(), "STATUS=rpc loop 1 has not answered for 7 s\n");
  manager.Stops();
  EXPECT_EQ(Next(), "STOPPING=1\nSTATUS=stops\n");
  std::filesystem::remove(path);
}

TEST_F(ServiceManagerTest, GetsSignsOfLifeAtTheirPeriod) {
  const std::string name = "@rnicd-notify-" + std::to_string(getpid());
  Listen(name);
  ServiceManager manager({.socket = name, .alive_every = seconds(15)});
  manager.StaysAlive(At(seconds(100)));
  EXPECT_EQ(Next(), "WATCHDOG=1\n");
  manager.StaysAlive(At(seconds(114)));
  EXPECT_EQ(Next(), "");
  manager.StaysAlive(At(seconds(115)));
  EXPECT_EQ(Next(), "WATCHDOG=1\n");
}

TEST_F(ServiceManagerTest, WithAFullQueueNothingWaitsAndTheStateFollows) {
  const std::string name = "@rnicd-notify-full-" + std::to_string(getpid());
  Listen(name);
  ServiceManager manager({.socket = name});
  for (int sent = 0; sent < 10'000; ++sent) {
    manager.SetStatus("more than any queue of datagrams holds");
  }
  manager.Serves("serves");
  while (!Next().empty()) {
  }
  manager.StaysAlive(At(seconds(1)));
  EXPECT_EQ(Next(), "READY=1\nSTATUS=serves\n");
  manager.StaysAlive(At(seconds(2)));
  EXPECT_EQ(Next(), "") << "once is enough";
}

TEST_F(ServiceManagerTest, NobodyIsToldAnythingWithoutASocket) {
  for (const std::string& name :
       {std::string(), std::string("/no/such/socket"), std::string("relative"), "/" + std::string(200, 'x')}) {
    ServiceManager manager({.socket = name, .alive_every = seconds(1)});
    manager.Serves("serves");
    manager.StaysAlive(At(seconds(100)));
  }
}

TEST_F(ServiceManagerTest, ReadsTheEnvironment) {
  setenv("NOTIFY_SOCKET", "/run/systemd/notify", 1);
  setenv("WATCHDOG_USEC", "30000000", 1);
  setenv("WATCHDOG_PID", std::to_string(getpid()).c_str(), 1);
  EXPECT_EQ(ServiceManager::FromEnvironment().socket, "/run/systemd/notify");
  EXPECT_EQ(ServiceManager::FromEnvironment().alive_every, seconds(15));
  setenv("WATCHDOG_PID", "1", 1);
  EXPECT_EQ(ServiceManager::FromEnvironment().alive_every.count(), 0) << "another process is watched";
  unsetenv("WATCHDOG_PID");
  setenv("WATCHDOG_USEC", "soon", 1);
  EXPECT_EQ(ServiceManager::FromEnvironment().alive_every.count(), 0);
  unsetenv("WATCHDOG_USEC");
  unsetenv("NOTIFY_SOCKET");
  EXPECT_EQ(ServiceManager::FromEnvironment().socket, "");
}

}  // namespace
}  // namespace rnicd::app
