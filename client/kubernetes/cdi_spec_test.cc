#include "client/kubernetes/cdi_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "client/kubernetes/node/folder_fixture_test.h"

namespace rnicd::kubernetes {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const MountPoint kDirectory{.container_path = "/run/rnicd", .host_path = "/var/run/rnicd"};

class CdiSpecTest : public FolderFixture {
 protected:
  ino_t Inode() const {
    struct stat facts = {};
    EXPECT_EQ(stat(Path("rnicd.io-socket.json").c_str(), &facts), 0);
    mode_ = facts.st_mode & 07777;
    return facts.st_ino;
  }

  mutable mode_t mode_ = 0;
};

TEST_F(CdiSpecTest, DescribesTheDirectoryAsADevice) {
  ASSERT_TRUE(WriteCdiSpec(folder_, kDirectory).ok());
  EXPECT_THAT(Names(), ElementsAre("rnicd.io-socket.json"));
  EXPECT_EQ(nlohmann::json::parse(Read("rnicd.io-socket.json"), nullptr, false), nlohmann::json::parse(R"({
    "cdiVersion": "0.3.0",
    "kind": "rnicd.io/socket",
    "devices": [{
      "name": "default",
      "containerEdits": {
        "env": ["RNICD_SOCKET_DIR=/run/rnicd"],
        "mounts": [{
          "hostPath": "/var/run/rnicd",
          "containerPath": "/run/rnicd",
          "options": ["ro", "nosuid", "nodev", "bind"]
        }]
      }
    }]
  })"));
}

TEST_F(CdiSpecTest, AWritableMountSaysSo) {
  MountPoint directory = kDirectory;
  directory.read_only = false;
  ASSERT_TRUE(WriteCdiSpec(folder_, directory).ok());
  EXPECT_THAT(Read("rnicd.io-socket.json"), HasSubstr("\"rw\""));
}

TEST_F(CdiSpecTest, ContainerEnginesMayReadIt) {
  ASSERT_TRUE(WriteCdiSpec(folder_, kDirectory).ok());
  Inode();
  EXPECT_EQ(mode_, 0644u);
}

// Engines read the file again whenever it changes.
TEST_F(CdiSpecTest, TheSameIsNotWrittenAgain) {
  ASSERT_TRUE(WriteCdiSpec(folder_, kDirectory).ok());
  const ino_t first = Inode();
  ASSERT_TRUE(WriteCdiSpec(folder_, kDirectory).ok());
  EXPECT_EQ(Inode(), first);
}

TEST_F(CdiSpecTest, AnotherDirectoryReplacesIt) {
  ASSERT_TRUE(WriteCdiSpec(folder_, kDirectory).ok());
  ASSERT_TRUE(WriteCdiSpec(folder_, {.container_path = "/sockets", .host_path = "/run/rnicd"}).ok());
  EXPECT_THAT(Read("rnicd.io-socket.json"), HasSubstr("RNICD_SOCKET_DIR=/sockets"));
  EXPECT_THAT(Names(), ElementsAre("rnicd.io-socket.json"));
}

TEST_F(CdiSpecTest, AFolderThatIsNotThereIsAnError) {
  EXPECT_THAT(WriteCdiSpec(Path("missing"), kDirectory).message(), HasSubstr("missing/rnicd.io-socket.json"));
}

}  // namespace
}  // namespace rnicd::kubernetes
