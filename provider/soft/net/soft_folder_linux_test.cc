// Links between the daemons of a folder, and what a peer that is no daemon can do to them.

#include "provider/soft/net/soft_folder_linux.h"

#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/waiting_fixture.h"

namespace rnicd::provider {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

IpAddress HostIp(const char* text) { return *IpAddress::FromText(text); }

// Keeps what arrives. Frames count as taken when `takes`.
class RecordingReceiver final : public SoftNetwork::Receiver {
 public:
  struct Arrived {
    uint64_t link = 0;
    SoftFrame frame;
  };

  explicit RecordingReceiver(SoftNetwork& network, bool takes = true) : network_(network), takes_(takes) {}
  void OnFrame(uint64_t link, SoftFrame frame) override {
    if (takes_) {
      network_.Taken(link);
    }
    MutexLock lock(mutex_);
    arrived_.push_back({link, std::move(frame)});
  }
  void OnLost(uint64_t link) override {
    MutexLock lock(mutex_);
    lost_.push_back(link);
  }
  std::vector<Arrived> arrived() const {
    MutexLock lock(mutex_);
    return arrived_;
  }
  size_t count() const {
    MutexLock lock(mutex_);
    return arrived_.size();
  }
  std::vector<uint64_t> lost() const {
    MutexLock lock(mutex_);
    return lost_;
  }

 private:
  SoftNetwork& network_;
  const bool takes_;
  mutable Mutex mutex_;
  std::vector<Arrived> arrived_ RNICD_GUARDED_BY(mutex_);
  std::vector<uint64_t> lost_ RNICD_GUARDED_BY(mutex_);
};

// A program that connects to a daemon's socket and says what it likes.
class RawPeer {
 public:
  explicit RawPeer(const std::string& path) : socket_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    connected_ = connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  }
  bool connected() const { return connected_; }
  bool Say(const std::string& packet) const {
    return send(socket_.get(), packet.data(), packet.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(packet.size());
  }
  bool Say(const SoftFrame& frame) const { return Say(FrameText(frame)); }
  // Takes what comes until the daemon closes the link.
  bool IsClosed() const {
    std::string packet(kFrameBytesMax, '\0');
    ssize_t size = 0;
    while ((size = recv(socket_.get(), packet.data(), packet.size(), 0)) > 0) {
    }
    return size == 0 || errno == ECONNRESET;
  }

 private:
  const UniqueFd socket_;
  bool connected_ = false;
};

class SoftFolderTest : public ::testing::Test {
 protected:
  SoftFolderTest() { EXPECT_NE(mkdtemp(folder_.data()), nullptr); }
  ~SoftFolderTest() override { std::filesystem::remove_all(folder_); }

  std::shared_ptr<SoftFolder> Open(const char* host, SoftFolder::Patience patience = {}) {
    auto opened = SoftFolder::Open(folder_, {HostIp(host)}, patience);
    EXPECT_TRUE(opened.ok()) << opened.status();
    return *std::move(opened);
  }
  absl::Status OpenError(const char* host) { return SoftFolder::Open(folder_, {HostIp(host)}).status(); }
  std::string PathOf(const char* host) const { return folder_ + "/" + host; }

  std::string folder_ = "/tmp/soft-folder-XXXXXX";
};

constexpr char kFirst[] = "198.18.1.1";
constexpr char kSecond[] = "198.18.2.1";
constexpr char kThird[] = "fd00::3";

TEST_F(SoftFolderTest, EachReachesTheOthersWhicheverStartedFirst) {
  const auto first = Open(kFirst);
  const auto second = Open(kSecond);
  const auto third = Open(kThird);
  EXPECT_EQ(third->Find(HostIp(kFirst)), 1U) << "it needs no hello to be reached";
  RecordingReceiver at_first(*first);
  RecordingReceiver at_second(*second);
  RecordingReceiver at_third(*third);
  first->Start(at_first);
  second->Start(at_second);
  third->Start(at_third);
  ASSERT_TRUE(Eventually([&] { return first->Find(HostIp(kThird)) != 0 && first->Find(HostIp(kSecond)) != 0; }));
  EXPECT_EQ(first->Find(HostIp(kFirst)), 0U);
  ASSERT_TRUE(first->Send(first->Find(HostIp(kThird)), SoftReply{.serial = 1}));
  ASSERT_TRUE(third->Send(third->Find(HostIp(kFirst)), SoftReply{.serial = 2}));
  ASSERT_TRUE(Eventually([&] { return at_first.arrived().size() == 1 && at_third.arrived().size() == 1; }));
  EXPECT_EQ(std::get<SoftReply>(at_third.arrived()[0].frame).serial, 1U);
  EXPECT_EQ(std::get<SoftReply>(at_first.arrived()[0].frame).serial, 2U);
  EXPECT_EQ(at_first.arrived()[0].link, first->Find(HostIp(kThird)));
  second->Stop();
  ASSERT_TRUE(Eventually([&] { return at_first.lost().size() == 1 && at_third.lost().size() == 1; }));
  EXPECT_EQ(first->Find(HostIp(kSecond)), 0U);
  third->Stop();
  first->Stop();
}

TEST_F(SoftFolderTest, LargeFramesArriveInOrder) {
  constexpr uint64_t kFrames = 200;
  const auto first = Open(kFirst);
  const auto second = Open(kSecond);
  RecordingReceiver at_first(*first);
  RecordingReceiver at_second(*second);
  second->Start(at_second);
  for (uint64_t serial = 1; serial <= kFrames; ++serial) {
    ASSERT_TRUE(second->Send(1, SoftReply{.serial = serial, .bytes = std::string(kPieceBytes, 'x')}));
  }
  first->Start(at_first);
  ASSERT_TRUE(Eventually([&] { return at_first.count() == kFrames; }));
  const std::vector<RecordingReceiver::Arrived> arrived = at_first.arrived();
  for (uint64_t serial = 1; serial <= kFrames; ++serial) {
    EXPECT_EQ(std::get<SoftReply>(arrived[serial - 1].frame).serial, serial);
  }
  second->Stop();
  first->Stop();
}

TEST_F(SoftFolderTest, AnAddressBelongsToOneDaemonUntilThatEnds) {
  {
    const auto first = Open(kFirst);
    EXPECT_THAT(OpenError(kFirst).message(), HasSubstr("another daemon has this address"));
  }
  EXPECT_FALSE(std::filesystem::exists(PathOf(kFirst)));
  {
    const RawPeer left(PathOf(kFirst));
  }
  EXPECT_TRUE(OpenError(kFirst).ok());
}

TEST_F(SoftFolderTest, TheSocketOfAKilledDaemonIsReplaced) {
  {
    const UniqueFd dead(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    PathOf(kFirst).copy(address.sun_path, sizeof(address.sun_path) - 1);
    ASSERT_EQ(bind(dead.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  }
  const auto second = Open(kSecond);
  EXPECT_EQ(second->Find(HostIp(kFirst)), 0U);
  EXPECT_TRUE(OpenError(kFirst).ok());
}

TEST_F(SoftFolderTest, AFolderThatOthersMayWriteToIsRefused) {
  ASSERT_EQ(chmod(folder_.c_str(), 0777), 0);
  EXPECT_THAT(OpenError(kFirst).message(), HasSubstr("nobody else may write"));
}

TEST_F(SoftFolderTest, ANameTooLongForASocketIsRefused) {
  folder_ += "/" + std::string(100, 'x');
  ASSERT_TRUE(std::filesystem::create_directory(folder_));
  EXPECT_THAT(OpenError(kFirst).message(), HasSubstr("too long for a socket"));
  folder_ = std::filesystem::path(folder_).parent_path().string();
}

// --- peers that are no daemons ---

class SoftFolderPeerTest : public SoftFolderTest {
 protected:
  ~SoftFolderPeerTest() override {
    good_->Stop();
    daemon_->Stop();
  }

  // The daemon and its other peer still hear each other.
  void ExpectNobodyHarmed() {
    const size_t before = at_good_.count();
    ASSERT_TRUE(good_->Send(1, SoftReply{.serial = 1}));
    ASSERT_TRUE(daemon_->Send(daemon_->Find(HostIp(kSecond)), SoftReply{.serial = 2}));
    EXPECT_TRUE(Eventually([&] { return at_good_.count() > before && at_daemon_.count() > 0; }));
  }

  const std::shared_ptr<SoftFolder> daemon_ = Open(kFirst);
  const std::shared_ptr<SoftFolder> good_ = Open(kSecond);
  RecordingReceiver at_daemon_{*daemon_};
  RecordingReceiver at_good_{*good_};
};

TEST_F(SoftFolderPeerTest, APeerThatIsNoDaemonLosesItsLinkOnly) {
  daemon_->Start(at_daemon_);
  good_->Start(at_good_);
  ASSERT_TRUE(Eventually([&] { return daemon_->Find(HostIp(kSecond)) != 0; }));
  const SoftFrame hello = SoftHello{.hosts = {HostIp(kThird)}};
  const std::string rubbish(100, 'r');
  const std::string half = FrameText(SoftRequest{.serial = 1}).substr(0, 20);
  const std::vector<std::vector<std::string>> talks = {
      {rubbish},
      {half},
      {std::string(kFrameBytesMax + 1, '\0')},
      {FrameText(SoftPing{})},
      {FrameText(SoftReply{})},
      {FrameText(hello), FrameText(hello)},
      {FrameText(hello), half},
      {FrameText(SoftHello{.hosts = {HostIp(kFirst)}})},
      {FrameText(SoftHello{.hosts = {HostIp(kSecond)}})},
      {FrameText(SoftHello{.hosts = {HostIp(kThird), HostIp(kSecond)}})},
  };
  for (const std::vector<std::string>& talk : talks) {
    const RawPeer peer(PathOf(kFirst));
    ASSERT_TRUE(peer.connected());
    for (const std::string& packet : talk) {
      peer.Say(packet);
    }
    EXPECT_TRUE(peer.IsClosed()) << talk.back().substr(0, 20);
  }
  EXPECT_TRUE(Eventually([&] { return at_daemon_.lost().size() == talks.size(); }));
  EXPECT_EQ(daemon_->Find(HostIp(kThird)), 0U);
  ExpectNobodyHarmed();
}

TEST_F(SoftFolderPeerTest, APeerThatSendsFasterThanIsTakenIsNotReadFrom) {
  constexpr size_t kRead = 128;
  RecordingReceiver at_daemon(*daemon_, /*takes=*/false);
  daemon_->Start(at_daemon);
  good_->Start(at_good_);
  const RawPeer peer(PathOf(kFirst));
  ASSERT_TRUE(peer.Say(SoftHello{.hosts = {HostIp(kThird)}}));
  std::thread flood([&peer] {
    while (peer.Say(SoftReply{.serial = 7})) {
    }
  });
  EXPECT_TRUE(Eventually([&] { return at_daemon.count() == kRead; }));
  const uint64_t link = daemon_->Find(HostIp(kThird));
  // Half of them make room for as many again.
  for (size_t count = 0; count < kRead / 2; ++count) {
    daemon_->Taken(link);
  }
  EXPECT_TRUE(Eventually([&] { return at_daemon.count() == kRead + kRead / 2; }));
  daemon_->Stop();
  flood.join();
}

TEST_F(SoftFolderPeerTest, APeerThatDoesNotReadLosesItsLink) {
  daemon_->Start(at_daemon_);
  good_->Start(at_good_);
  const RawPeer peer(PathOf(kFirst));
  ASSERT_TRUE(peer.Say(SoftHello{.hosts = {HostIp(kThird)}}));
  ASSERT_TRUE(Eventually([&] { return daemon_->Find(HostIp(kThird)) != 0; }));
  const uint64_t link = daemon_->Find(HostIp(kThird));
  const SoftFrame large = SoftReply{.serial = 1, .bytes = std::string(kPieceBytes, 'x')};
  EXPECT_TRUE(Eventually([&] { return !daemon_->Send(link, large); }));
  EXPECT_THAT(at_daemon_.lost(), ElementsAre(link));
  ExpectNobodyHarmed();
}

TEST_F(SoftFolderPeerTest, ASilentPeerLosesItsLink) {
  const auto impatient = Open(kThird, {.tick = std::chrono::milliseconds(1), .silent_ticks = 5});
  RecordingReceiver at_impatient(*impatient);
  const RawPeer mute(PathOf(kThird));
  const RawPeer greets(PathOf(kThird));
  ASSERT_TRUE(greets.Say(SoftHello{.hosts = {HostIp("198.18.9.9")}}));
  impatient->Start(at_impatient);
  EXPECT_TRUE(mute.IsClosed());
  EXPECT_TRUE(greets.IsClosed());
  impatient->Stop();
}

TEST_F(SoftFolderPeerTest, AnotherUserIsTurnedAway) {
  constexpr uid_t kNobody = 65534;
  ASSERT_EQ(chmod(folder_.c_str(), 0755), 0);
  ASSERT_EQ(chmod(PathOf(kFirst).c_str(), 0666), 0);
  const pid_t child = fork();
  if (child == 0) {
    // Only root can become another user.
    const bool is_other = geteuid() != 0 || setresuid(kNobody, kNobody, kNobody) == 0;
    const RawPeer peer(PathOf(kFirst));
    if (geteuid() == kNobody) {
      peer.Say(SoftHello{.hosts = {HostIp(kThird)}});
      _exit(is_other && peer.connected() && peer.IsClosed() ? 0 : 1);
    }
    _exit(is_other ? 0 : 1);
  }
  daemon_->Start(at_daemon_);
  good_->Start(at_good_);
  int status = 1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(daemon_->Find(HostIp(kThird)), 0U);
  ExpectNobodyHarmed();
}

}  // namespace
}  // namespace rnicd::provider
