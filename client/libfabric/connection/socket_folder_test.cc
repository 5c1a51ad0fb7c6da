#include "client/libfabric/connection/socket_folder.h"

#include <gtest/gtest.h>
#include <rdma/fi_errno.h>
#include <sys/un.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "client/libfabric/connection/connection_fixture.h"
#include "client/libfabric/connection/rendezvous.h"
#include "client/libfabric/socket_address.h"

namespace rnicd::fi {
namespace {

namespace fs = std::filesystem;

ptrdiff_t FilesIn(const std::string& folder) { return std::distance(fs::directory_iterator(folder), {}); }

// What a process that was killed leaves.
void LeaveStaleSocket(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(listen(socket.get(), 1), 0);
}

int OpenAt(uint16_t port, std::unique_ptr<Listener>* listener) { return Listener::Open(Loopback(port), listener); }

TEST(FiSocketFolder, ASocketIsNamedAfterItsAddressWhileItIsOpen) {
  const FolderOfSockets folder;
  std::unique_ptr<Listener> listener;
  ASSERT_EQ(OpenAt(40001, &listener), 0);
  EXPECT_TRUE(fs::is_socket(folder.path() + "/127.0.0.1:40001"));
  EXPECT_EQ(FilesIn(folder.path()), 1);
  listener.reset();
  EXPECT_EQ(FilesIn(folder.path()), 0);
}

TEST(FiSocketFolder, PortZeroIsAFreeName) {
  const FolderOfSockets folder;
  std::vector<std::unique_ptr<Listener>> listeners(8);
  std::set<uint16_t> ports;
  for (std::unique_ptr<Listener>& listener : listeners) {
    ASSERT_EQ(OpenAt(0, &listener), 0);
    ports.insert(PortOf(listener->address()));
  }
  EXPECT_EQ(ports.size(), listeners.size());
  EXPECT_FALSE(ports.contains(0));
}

TEST(FiSocketFolder, ANameThatIsInUseIsRefused) {
  const FolderOfSockets folder;
  std::unique_ptr<Listener> first;
  std::unique_ptr<Listener> second;
  ASSERT_EQ(OpenAt(40001, &first), 0);
  EXPECT_EQ(OpenAt(40001, &second), -FI_EADDRINUSE);
  EXPECT_EQ(FilesIn(folder.path()), 1);
  Stream stream;
  EXPECT_EQ(BeginConnect(Loopback(40001), {}, &stream), 0);
}

TEST(FiSocketFolder, TheSocketOfAProcessThatHasEndedIsTakenOver) {
  const FolderOfSockets folder;
  LeaveStaleSocket(folder.path() + "/127.0.0.1:40001");
  Stream stream;
  EXPECT_EQ(BeginConnect(Loopback(40001), {}, &stream), -FI_ECONNREFUSED);
  std::unique_ptr<Listener> listener;
  ASSERT_EQ(OpenAt(40001, &listener), 0);
  EXPECT_EQ(BeginConnect(Loopback(40001), {}, &stream), 0);
  EXPECT_EQ(FilesIn(folder.path()), 1);
}

TEST(FiSocketFolder, AFileThatIsNoSocketStays) {
  const FolderOfSockets folder;
  const std::string path = folder.path() + "/127.0.0.1:40001";
  std::ofstream(path) << "mine";
  std::unique_ptr<Listener> listener;
  EXPECT_EQ(OpenAt(40001, &listener), -FI_EADDRINUSE);
  EXPECT_TRUE(fs::is_regular_file(path));
}

TEST(FiSocketFolder, AListenerAtAllAddressesIsFoundAtEach) {
  const FolderOfSockets folder;
  std::unique_ptr<Listener> listener;
  ASSERT_EQ(Listener::Open(AnyHost(Loopback(40001)), &listener), 0);
  Stream stream;
  EXPECT_EQ(BeginConnect(Loopback(40001), {}, &stream), 0);
}

TEST(FiSocketFolder, APathThatIsTooLongOrAFolderThatIsNotThereIsRefused) {
  const FolderOfSockets folder;
  std::unique_ptr<Listener> listener;
  setenv("FI_RNICD_SOCKET_DIR", (folder.path() + "/none").c_str(), 1);
  EXPECT_EQ(OpenAt(0, &listener), -FI_ENOENT);
  setenv("FI_RNICD_SOCKET_DIR", std::string(120, 'x').c_str(), 1);
  EXPECT_EQ(OpenAt(0, &listener), -ENAMETOOLONG);
}

}  // namespace
}  // namespace rnicd::fi
