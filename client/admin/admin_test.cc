#include "client/admin/admin.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/files/unique_fd.h"
#include "client/cpp/channel/daemon_address.h"
#include "client/cpp/transport_failure.h"

namespace rnicd {
namespace {

// Accepts connections as a stopped process does: the kernel completes them, and nothing ever answers.
class HangingDaemon {
 public:
  HangingDaemon() {
    std::string form = (std::filesystem::temp_directory_path() / "rnicd-XXXXXX").string();
    folder_ = mkdtemp(form.data());
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    std::strncpy(address.sun_path, (folder_ + "/admin.sock").c_str(), sizeof(address.sun_path) - 1);
    EXPECT_EQ(bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(listen(socket_.get(), 16), 0);
  }
  ~HangingDaemon() { std::filesystem::remove_all(folder_); }

  const std::string& folder() const { return folder_; }
  // The next connection that the kernel has completed; invalid if there is none.
  UniqueFd Accept() { return UniqueFd(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC)); }

 private:
  std::string folder_;
  const UniqueFd socket_{socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
};

// The first alone would take longer than all of them may, if it took the default.
TEST(Admin, ACallToADaemonThatHangsEndsAfterTheTimeoutOfTheCaller) {
  const HangingDaemon daemon;
  Admin admin(daemon.folder(), std::chrono::milliseconds(1));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(IsTransportFailure(admin.Status().status()));
  EXPECT_TRUE(IsTransportFailure(admin.Grants().status()));
  EXPECT_TRUE(IsTransportFailure(admin.Sessions().status()));
  EXPECT_TRUE(IsTransportFailure(admin.RevokeGrant(1).status()));
  EXPECT_TRUE(IsTransportFailure(admin.BindGrant(1, "").status()));
  EXPECT_TRUE(IsTransportFailure(admin.SetPods({})));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, Admin::kDefaultTimeout);
}

TEST(Admin, ConnectsAgainOnlyAfterTheDaemonEndedTheConnection) {
  HangingDaemon daemon;
  Admin admin(daemon.folder(), std::chrono::milliseconds(1));
  EXPECT_FALSE(admin.Status().ok());
  UniqueFd first = daemon.Accept();
  EXPECT_TRUE(first.valid());
  EXPECT_FALSE(admin.Live().ok());
  EXPECT_FALSE(daemon.Accept().valid());
  first.Reset(-1);
  EXPECT_FALSE(admin.Status().ok());
  EXPECT_TRUE(daemon.Accept().valid());
}

TEST(OlderGenerations, AreThoseWithASocketOfThatNameTheNewestFirst) {
  const HangingDaemon daemon;
  for (const char* name : {"admin-2.sock", "admin-10.sock", "admin-0.sock", "admin-03.sock", "admin-4.sock.old",
                           "admin-x.sock", "admin-.sock", "admin-4294967296.sock", "other-5.sock", "a"}) {
    std::ofstream(daemon.folder() + "/" + name);
  }
  EXPECT_EQ(OlderGenerations(daemon.folder()), (std::vector<uint32_t>{10, 2}));
  EXPECT_TRUE(OlderGenerations(daemon.folder() + "/absent").empty());
}

}  // namespace
}  // namespace rnicd
