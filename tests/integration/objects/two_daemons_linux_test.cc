// Two daemons of one machine, whose soft cards are on one network: connections and transfers between them, and what the
// death of one leaves at the other.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/trust_fixture.h"
#include "tests/support/connection_client.h"
#include "tests/support/process/raw_socket.h"
#include "tests/support/process/temp_dir.h"
#include "tests/support/process/wait.h"

namespace rnicd::test {
namespace {

using ::testing::HasSubstr;

constexpr char kNorth[] = "198.18.1.1";
constexpr char kSouth[] = "198.18.2.1";
constexpr uint32_t kFlushed = static_cast<uint32_t>(NtStatus::kCancelled);
constexpr uint32_t kTimedOut = static_cast<uint32_t>(NtStatus::kIoTimeout);

class TwoDaemons : public testing::Test {
 protected:
  ~TwoDaemons() override {
    ExpectNothingHeld(*north_, north_idle_);
    ExpectNothingHeld(*south_, south_idle_);
    EXPECT_TRUE(south_->Stop().ok());
    EXPECT_TRUE(north_->Stop().ok());
    EXPECT_TRUE(std::filesystem::is_empty(folder()));
  }

  DaemonOptions OptionsOf(const char* address) const {
    return {.flags = {"--provider=soft", "--soft_addresses=" + std::string(address), "--soft_network=" + folder(),
                      LimitsFlag("connections { listen { prefix: '::/0' } connect { prefix: '::/0' } "
                                 "accept { prefix: '::/0' } }")}};
  }
  std::unique_ptr<DaemonProcess> Start(const char* address) const {
    auto started = DaemonProcess::Start(OptionsOf(address));
    EXPECT_TRUE(started.ok()) << started.status();
    return *std::move(started);
  }
  // Either daemon reaches the other: north, which started first, when it has heard of south.
  void AwaitLink() const {
    TestParty party(*north_);
    EXPECT_TRUE(Eventually([&] {
      const TestQueue queue(party);
      const uint64_t connector = CreateConnector(party);
      ExpectPends(Connect(party, RequestTo(connector, queue, AddressOf(kSouth, 1))));
      const v1::RequestCompleted completion = party.NextCompletion();
      ExpectOk(CloseConnector(party, connector));
      return completion.ntstatus() == static_cast<uint32_t>(RowOf(ErrorReason::CONNECTION_REFUSED).ntstatus);
    }));
  }
  std::unique_ptr<DaemonProcess> StartSouth() const {
    std::unique_ptr<DaemonProcess> south = Start(kSouth);
    AwaitLink();
    return south;
  }
  std::string folder() const { return temp_.path() + "/net"; }

  const TempDir temp_;
  const std::unique_ptr<DaemonProcess> north_ = Start(kNorth);
  std::unique_ptr<DaemonProcess> south_ = StartSouth();
  const IdleState north_idle_ = MeasureIdle(*north_);
  const IdleState south_idle_ = MeasureIdle(*south_);
};

// Memory of one side, with all rights for its peer.
struct BigMemory {
  static constexpr uint64_t kBytes = 1 << 20;

  explicit BigMemory(TestSession& session)
      : memory(session, kBytes),
        registration(session.RegisterWhole(session.CreateMr(), memory.id(), kBytes, kEveryMrRight)) {}
  v1::Sge Whole() const { return Sge(kBase, kBytes, registration.local_token()); }
  v1::Sge Bytes(uint64_t offset, uint32_t count) const {
    return Sge(kBase + offset, count, registration.local_token());
  }
  uint32_t token() const { return registration.remote_token(); }

  TestMemory memory;
  v1::Registration registration;
};

void ExpectTransfers(TestQueue& own, BigMemory& near, TestQueue& peer, BigMemory& far) {
  peer.MustPost({ReceiveRequest({far.Bytes(64, 16)}, 7)});
  near.memory.SetText(0, "a message");
  own.MustRun(SendRequest({near.Bytes(0, 9)}));
  const v1::CqResultEx received = peer.NextReceive();
  EXPECT_EQ(received.result().ntstatus(), kStatusSuccess);
  EXPECT_EQ(received.result().bytes_transferred(), 9U);
  EXPECT_EQ(far.memory.Text(64, 9), "a message");

  std::span<std::byte> bytes = near.memory.bytes();
  for (size_t index = 0; index < bytes.size(); ++index) {
    bytes[index] = static_cast<std::byte>(index * 7 + index / 65536);
  }
  own.MustRun(WriteRequest({near.Whole()}, kBase, far.token()));
  EXPECT_TRUE(std::ranges::equal(far.memory.bytes(), bytes));
  near.memory.Fill(std::byte{0});
  own.MustRun(ReadRequest({near.Whole()}, kBase, far.token()));
  EXPECT_TRUE(std::ranges::equal(far.memory.bytes(), bytes));
}

void ExpectConnects(DaemonProcess& active, DaemonProcess& passive) {
  TestConnection connection(active, passive);
  connection.Make();
  BigMemory near(connection.active);
  BigMemory far(connection.passive);
  ExpectTransfers(connection.active_queue, near, connection.passive_queue, far);
  ExpectTransfers(connection.passive_queue, far, connection.active_queue, near);
  connection.End();
}

TEST_F(TwoDaemons, ConnectByAddressAndTransferBothWays) {
  ExpectConnects(*south_, *north_);
  ExpectConnects(*north_, *south_);
}

TEST_F(TwoDaemons, ASendWaitsForTheReceiveOfTheOtherDaemon) {
  TestConnection connection(*north_, *south_);
  connection.Make();
  connection.active_queue.MustPost({SendRequest({InlineSge("waits")}, v1::OP_FLAG_INLINE)});
  SharedPage page(connection.passive);
  connection.passive_queue.MustPost({ReceiveRequest({page.FirstBytes(8)})});
  EXPECT_EQ(connection.passive_queue.NextReceive().result().ntstatus(), kStatusSuccess);
  EXPECT_EQ(connection.active_queue.NextInitiator().result().ntstatus(), kStatusSuccess);
  EXPECT_EQ(page.memory.Text(0, 5), "waits");
}

TEST_F(TwoDaemons, ARejectionsPrivateDataArrive) {
  TestConnection connection(*north_, *south_);
  connection.Ask();
  ExpectOk(Reject(connection.passive, connection.passive_id, "no room"));
  ExpectFailed(connection.active.NextCompletion(), v1::REQUEST_KIND_CONNECT, kConnectContext,
               ErrorReason::CONNECTION_REFUSED);
  const auto data = ConnectionData(connection.active, connection.active_id);
  ExpectOk(data);
  EXPECT_EQ(data.response.private_data().substr(0, 7), "no room");
}

TEST_F(TwoDaemons, AQueuePairOfTheOtherDaemonCannotBeNamedByHand) {
  TestSession near(*north_);
  TestSession far(*south_);
  TestQueue near_queue(near);
  TestQueue far_queue(far);
  ExpectRefused(Connect(near_queue, far_queue.Query().address()), ErrorReason::QP_ADDRESS_UNKNOWN, "peer_address");
}

TEST_F(TwoDaemons, TheDeathOfOneEndsWhatTheOtherWaitsFor) {
  TestParty asking(*north_);
  TestQueue asking_queue(asking);
  const uint64_t asking_id = CreateConnector(asking);
  TestConnection connection(*north_, *south_);
  connection.Make();
  ExpectPends(Connect(asking, RequestTo(asking_id, asking_queue, connection.listener.local)));
  connection.passive.NextRequest();
  SharedPage page(connection.active);
  connection.active_queue.MustPost({ReceiveRequest({page.FirstBytes(8)}), SendRequest({page.FirstBytes(8)}),
                                    ReadRequest({page.FirstBytes(8)}, kBase, 1)});
  south_->KillHard();
  EXPECT_EQ(connection.active_queue.NextInitiator().result().ntstatus(), kTimedOut);
  EXPECT_EQ(connection.active_queue.NextInitiator().result().ntstatus(), kFlushed);
  EXPECT_EQ(connection.active_queue.NextReceive().result().ntstatus(), kFlushed);
  EXPECT_EQ(connection.active.NextDisconnect().connector_id(), connection.active_id);
  ExpectOk(Disconnect(connection.active, connection.active_id));
  ExpectFailed(asking.NextCompletion(), v1::REQUEST_KIND_CONNECT, kConnectContext, ErrorReason::CONNECTION_ABORTED);
  ExpectOk(CloseConnector(asking, asking_id));
  south_ = StartSouth();
  ExpectConnects(*north_, *south_);
}

TEST_F(TwoDaemons, TheDeathOfTheOneThatAsksEndsAccept) {
  TestConnection connection(*south_, *north_);
  connection.Ask();
  connection.Answer();
  south_->KillHard();
  ExpectFailed(connection.passive.NextCompletion(), v1::REQUEST_KIND_ACCEPT, kAcceptContext,
               ErrorReason::CONNECTION_ABORTED);
  south_ = StartSouth();
}

TEST_F(TwoDaemons, StrangersAtTheSocketHarmNobody) {
  TestConnection connection(*north_, *south_);
  connection.Make();
  const UniqueFd rubbish = ConnectUnix(folder() + "/" + kSouth, SOCK_SEQPACKET);
  const UniqueFd silent = ConnectUnix(folder() + "/" + kSouth, SOCK_SEQPACKET);
  ASSERT_TRUE(rubbish.valid() && silent.valid());
  EXPECT_TRUE(SendBytes(rubbish.get(), std::string(1000, 'r')));
  EXPECT_TRUE(HangsUp(rubbish.get()));
  BigMemory near(connection.active);
  BigMemory far(connection.passive);
  ExpectTransfers(connection.active_queue, near, connection.passive_queue, far);
  connection.End();
}

TEST_F(TwoDaemons, AnAddressThatIsTakenIsRefused) {
  auto launched = DaemonProcess::Launch(OptionsOf(kSouth));
  ASSERT_TRUE(launched.ok()) << launched.status();
  EXPECT_EQ((*launched)->process().WaitForEnd().value_or(ProcessEnd()).exit_code, 1);
  (*launched)->process().errors().WaitForEnd(kTimeout);
  EXPECT_THAT((*launched)->log(), HasSubstr("another daemon has this address"));
}

}  // namespace
}  // namespace rnicd::test
