// Both sides of a hand-over, over a real socket; the daemons only record.
#include <sys/socket.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/handover/handover_fixture_test.h"

namespace rnicd::handover {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// A newer generation's daemon that waits for what it is told.
class RecordingTaker final : public TakingDaemon, public Recorder {
 public:
  std::string OwnCounters() override { return "own"; }
  void OnProcessEnded(const v1::HandoverProcess& process) override { Record("ended " + std::to_string(process.low())); }
  v1::HandoverUse Grow(const v1::HandoverUse& wanted) override { return wanted; }
  void Shrink(const v1::HandoverUse& shrunk) override { Record("shrunk " + shrunk.held(0).tenant()); }
  void OnHandedBack(const v1::HandoverFile& listener, UniqueSocket socket) override {
    char byte = 0;
    const bool read_it = read(socket.get(), &byte, 1) == 1;
    Record("back " + std::to_string(listener.grant_id()) + (read_it ? std::string(" ") + byte : ""));
  }
  void OnCounters(const std::string& text, const v1::HandoverCounters& /*generations*/) override {
    Record("counters " + text);
  }
  void OnPredecessorEnded() override { Record("predecessor ended"); }
};

// Two ends of a connection; the first has sent a byte.
std::array<UniqueSocket, 2> Connection(char byte) {
  std::array<int, 2> ends = {-1, -1};
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  EXPECT_EQ(write(ends[0], &byte, 1), 1);
  return {UniqueSocket(ends[0]), UniqueSocket(ends[1])};
}

TEST_F(HandoverTest, WithoutADaemonThereIsNoPredecessor) {
  giver_.Stop();
  std::filesystem::remove(folder_ + "/" + kSocketName);
  const auto connected = Predecessor::Connect(folder_);
  ASSERT_TRUE(connected.ok()) << connected.status();
  EXPECT_EQ(*connected, nullptr);
}

TEST_F(HandoverTest, MoreFilesThanAPacketTakesArriveInTheirOrder) {
  older_.files = 300;
  const auto newer = Connect();
  const auto taken = newer->Take("1.0");
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_EQ(taken->contents.generation(), 7u);
  ASSERT_EQ(taken->files.size(), 301u);
  EXPECT_EQ(taken->contents.files(300).kind(), v1::HANDOVER_FILE_KIND_HANDOVER);
  int listens = 0;
  socklen_t size = sizeof(listens);
  EXPECT_EQ(getsockopt(taken->files.back().get(), SOL_SOCKET, SO_ACCEPTCONN, &listens, &size), 0);
  EXPECT_EQ(listens, 1);
}

TEST_F(HandoverTest, ARefusalChangesNothingAndNamesItsReason) {
  older_.refusal = absl::UnavailableError("no descriptor is left");
  const auto newer = Connect();
  EXPECT_THAT(std::string(newer->Take("1.0").status().message()), HasSubstr("no descriptor is left"));
  EXPECT_THAT(older_.heard(), ElementsAre("give"));
}

TEST_F(HandoverTest, AnEndAtAnyStepLeavesTheOlderOneServing) {
  for (int steps = 0; steps < 3; ++steps) {
    auto newer = Connect();
    EXPECT_TRUE(steps < 1 || newer->Take("1.0").ok());
    EXPECT_TRUE(steps < 2 || newer->Commit().ok());
  }
  const auto last = Connect();
  EXPECT_TRUE(last->Take("1.0").ok());
  EXPECT_TRUE(last->Commit().ok());
  EXPECT_THAT(older_.heard(), ElementsAre("give", "take back", "give", "retire", "take back", "give", "retire"));
}

TEST_F(HandoverTest, ANewerGenerationThatIsSilentIsGivenUp) {
  const auto newer = Connect();
  ASSERT_TRUE(newer->Take("1.0").ok());
  clock_.Advance(std::chrono::seconds(20));
  older_.WaitFor("take back");
  EXPECT_FALSE(newer->Commit().ok());
}

TEST_F(HandoverTest, OneThatStopsToSpeakDoesNotKeepOthersOut) {
  older_.refusal = absl::UnavailableError("not now");
  const auto silent = Connect();
  EXPECT_FALSE(silent->Take("1.0").ok());
  older_.refusal = absl::OkStatus();
  clock_.Advance(std::chrono::seconds(20));
  EXPECT_TRUE(Connect()->Take("1.0").ok());
}

TEST_F(HandoverTest, GarbageEndsItsConnectionAlone) {
  v1::HandoverMessage take;
  take.mutable_take()->set_version("1.0");
  const std::string half = take.SerializeAsString().substr(0, take.ByteSizeLong() / 2);
  for (const std::string& garbage : {half, std::string("\xff\xff\xff"), std::string(kMaxPacketBytes + 1, 'a')}) {
    auto channel = Channel::Connect(folder_);
    ASSERT_TRUE(channel.ok() && channel->has_value());
    ASSERT_EQ(send((*channel)->fd(), garbage.data(), garbage.size(), 0), static_cast<ssize_t>(garbage.size()));
    EXPECT_EQ((*channel)->WaitForPacket(std::chrono::seconds(60)).status().code(), absl::StatusCode::kUnavailable);
  }
  EXPECT_TRUE(Connect()->Take("1.0").ok());
}

TEST_F(HandoverTest, AMessageOfALaterReleaseIsSkipped) {
  auto channel = Channel::Connect(folder_);
  ASSERT_TRUE(channel.ok() && channel->has_value());
  // Field 31, which is empty.
  ASSERT_EQ(send((*channel)->fd(), "\xfa\x01\x00", 3, 0), 3);
  Outgoing take;
  take.message.mutable_take()->set_version("9.0");
  ASSERT_TRUE((*channel)->Send(std::move(take)).ok());
  EXPECT_TRUE((*channel)->WaitForPacket(std::chrono::seconds(60)).ok());
}

TEST_F(HandoverTest, ForANewerOneThatDoesNotReadNoCountersPileUp) {
  const auto newer = Connect();
  ASSERT_TRUE(newer->Take("1.0").ok());
  ASSERT_TRUE(newer->Commit().ok());
  for (int count = 0; count < 8; ++count) {
    Outgoing wanted;
    wanted.message.mutable_wanted()->add_held()->set_tenant(std::string(kMaxPacketBytes - 64, 'a'));
    giver_.Tell(std::move(wanted));
  }
  older_.has_counters.store(true);
  older_.WaitForCount(6);
  EXPECT_THAT(older_.heard(), Not(Contains("the last counters wait")));
}

// Should its folder ever let one in.
TEST_F(HandoverTest, AProcessOfAnotherUserIsNotHeard) {
  if (geteuid() != 0) {
    return;
  }
  std::filesystem::permissions(folder_, std::filesystem::perms::all);
  std::filesystem::permissions(folder_ + "/" + kSocketName, std::filesystem::perms::all);
  std::thread([this] {
    // For this thread alone, unlike what the C library does.
    ASSERT_EQ(syscall(SYS_setresuid, -1, 65534, -1), 0);
    auto channel = Channel::Connect(folder_);
    ASSERT_TRUE(channel.ok() && channel->has_value()) << channel.status();
    Outgoing take;
    take.message.mutable_take()->set_version("1.0");
    (void)(*channel)->Send(std::move(take));
    EXPECT_EQ((*channel)->WaitForPacket(std::chrono::seconds(60)).status().code(), absl::StatusCode::kUnavailable);
  }).join();
  EXPECT_THAT(older_.heard(), ElementsAre());
}

TEST_F(HandoverTest, ARoutedConnectionArrivesUnreadAndGoesBackUnread) {
  RecordingTaker taker;
  const auto newer = Connect();
  ASSERT_TRUE(newer->Take("1.0").ok());
  ASSERT_TRUE(newer->Commit().ok());
  ASSERT_TRUE(newer->Serve(taker).ok());
  auto routed = Connection('a');
  newer->Route({}, std::make_shared<const UniqueSocket>(std::move(routed[1])));
  older_.WaitFor("received a");
  auto returned = Connection('b');
  Outgoing back;
  back.message.mutable_socket()->mutable_listener()->set_grant_id(5);
  back.sockets.push_back(std::make_shared<const UniqueSocket>(std::move(returned[1])));
  giver_.Tell(std::move(back));
  taker.WaitFor("back 5 b");
  newer->NarrowGrant(GrantId{9}, " a");
  older_.WaitFor("grant 9 a");
  newer->Stop();
}

TEST_F(HandoverTest, TheNewerOneHearsOfWhatEndsAlsoBeforeItServes) {
  RecordingTaker taker;
  const auto newer = Connect();
  ASSERT_TRUE(newer->Take("1.0").ok());
  Outgoing ended;
  ended.message.mutable_process_ended()->set_low(3);
  giver_.Tell(std::move(ended));
  ASSERT_TRUE(newer->Commit().ok());
  ASSERT_TRUE(newer->Serve(taker).ok());
  taker.WaitFor("ended 3");
  Outgoing wanted;
  wanted.message.mutable_wanted()->add_held()->set_tenant("storage");
  giver_.Tell(std::move(wanted));
  older_.WaitFor("granted storage");
  older_.WaitFor("counters own");
  newer->Stop();
}

}  // namespace
}  // namespace rnicd::handover
