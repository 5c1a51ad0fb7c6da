// A process is killed at any moment of a connection: its peer hears of it, and nothing is left.
#include <cstdint>
#include <memory>
#include <random>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/admin_client.h"
#include "tests/support/connection_client.h"
#include "tests/support/process/child_client.h"
#include "tests/support/process/wait.h"
#include "tests/support/shared_daemon.h"

namespace rnicd::test {
namespace {

constexpr uint64_t kDisconnect = 0xb1;

// How far a process has come when it is killed.
enum class Moment : uint8_t {
  // Its request waits at the peer; a request waits at it.
  kAsking,
  // Active: it has the answer; passive: Accept waits.
  kAnswered,
  // While it completes; while it accepts.
  kDeciding,
  kConnected,
  // Disconnect waits for the peer.
  kDisconnecting,
  // The peer's Disconnect waits for it.
  kPeerGone,
};
constexpr int kMoments = 6;

class KilledPeers : public DaemonTest {
 protected:
  // Kills the process on either side, and checks what its peer hears.
  void KillActive(Moment moment);
  void KillPassive(Moment moment);
  // No listener and no connector is left, and nothing else.
  void Kill(bool active, Moment moment) {
    active ? KillActive(moment) : KillPassive(moment);
    EXPECT_TRUE(Eventually([&] { return AdminConnections(daemon()).empty() && AdminListeners(daemon()).empty(); }));
    ExpectNothingHeld(daemon(), idle());
  }

 private:
  // Until the session of the process has ended.
  void WaitUntilReclaimed() {
    EXPECT_TRUE(Eventually([&] { return AdminSessions(daemon()).size() == 1; }));
  }
  // The rest is the same on both sides, once the connection is made.
  void KillConnected(ChildClient& child, Moment moment, TestParty& peer, uint64_t connector_id);
};

void KilledPeers::KillActive(Moment moment) {
  TestParty peer(daemon());
  const TestListener listener(peer);
  const TestQueue queue(peer);
  const auto child = ChildClient::Start(daemon());
  ASSERT_NE(child, nullptr);
  child->MustRun("party ask " + listener.local.address() + " " + std::to_string(listener.local.port()));
  const uint64_t connector = peer.NextRequest().connector_id();
  v1::AcceptRequest accept = AnswerTo(connector, queue);
  if (moment == Moment::kAsking) {
    child->KillHard();
    WaitUntilReclaimed();
    accept.set_allow_pending(false);
    ExpectRefused(Accept(peer, accept), ErrorReason::CONNECTION_ABORTED);
    return;
  }
  ExpectPends(Accept(peer, accept));
  child->MustRun("party ended");
  if (moment == Moment::kAnswered) {
    child->KillHard();
    ExpectFailed(peer.NextCompletion(), v1::REQUEST_KIND_ACCEPT, kAcceptContext, ErrorReason::CONNECTION_ABORTED);
    return;
  }
  if (moment == Moment::kDeciding) {
    child->Send("party complete");
    child->KillHard();
    if (peer.NextCompletion().ntstatus() == kStatusSuccess) {
      peer.NextDisconnect();
    }
    return;
  }
  child->MustRun("party complete");
  ExpectDone(peer.NextCompletion(), v1::REQUEST_KIND_ACCEPT, kAcceptContext, connector);
  KillConnected(*child, moment, peer, connector);
}

void KilledPeers::KillPassive(Moment moment) {
  TestParty peer(daemon());
  const TestQueue queue(peer);
  const auto child = ChildClient::Start(daemon());
  ASSERT_NE(child, nullptr);
  const ChildAnswer listening = child->MustRun("party listen");
  const uint64_t connector = CreateConnector(peer);
  const v1::NetworkAddress address =
      AddressOf(listening.values.at("ip"), static_cast<uint32_t>(listening.number("port")));
  ExpectPends(Connect(peer, RequestTo(connector, queue, address)));
  child->MustRun("party requested");
  if (moment == Moment::kAsking) {
    child->KillHard();
    ExpectFailed(peer.NextCompletion(), v1::REQUEST_KIND_CONNECT, kConnectContext, ErrorReason::CONNECTION_REFUSED);
    return;
  }
  if (moment == Moment::kDeciding) {
    child->Send("party accept");
    child->KillHard();
    if (peer.NextCompletion().ntstatus() == kStatusSuccess) {
      WaitUntilReclaimed();
      ExpectRefused(CompleteConnect(peer, connector), ErrorReason::CONNECTION_ABORTED);
    }
    return;
  }
  child->MustRun("party accept");
  ExpectDone(peer.NextCompletion(), v1::REQUEST_KIND_CONNECT, kConnectContext, connector);
  if (moment == Moment::kAnswered) {
    child->KillHard();
    WaitUntilReclaimed();
    ExpectRefused(CompleteConnect(peer, connector), ErrorReason::CONNECTION_ABORTED);
    return;
  }
  ExpectOk(CompleteConnect(peer, connector));
  child->MustRun("party ended");
  KillConnected(*child, moment, peer, connector);
}

void KilledPeers::KillConnected(ChildClient& child, Moment moment, TestParty& peer, uint64_t connector_id) {
  if (moment == Moment::kPeerGone) {
    ExpectPends(Disconnect(peer, connector_id, kDisconnect));
    child.MustRun("party lost");
    child.KillHard();
    ExpectDone(peer.NextCompletion(), v1::REQUEST_KIND_DISCONNECT, kDisconnect, connector_id);
    return;
  }
  if (moment == Moment::kDisconnecting) {
    child.MustRun("party disconnect");
  }
  child.KillHard();
  EXPECT_EQ(peer.NextDisconnect().connector_id(), connector_id);
  ExpectOk(Disconnect(peer, connector_id));
}

TEST_F(KilledPeers, LeaveNothingWhateverTheState) {
  for (int moment = 0; moment < kMoments && !HasFailure(); ++moment) {
    SCOPED_TRACE("moment " + std::to_string(moment));
    Kill(true, static_cast<Moment>(moment));
    Kill(false, static_cast<Moment>(moment));
  }
}

class ManyKilledPeers : public KilledPeers {};

TEST_F(ManyKilledPeers, LeaveNothingTwoHundredTimes) {
  constexpr int kTimes = 200;
  const unsigned seed = std::random_device{}();
  std::mt19937 random(seed);
  for (int count = 0; count < kTimes && !HasFailure(); ++count) {
    const bool active = random() % 2 == 0;
    const auto moment = static_cast<Moment>(random() % kMoments);
    SCOPED_TRACE("seed " + std::to_string(seed) + ", time " + std::to_string(count));
    Kill(active, moment);
  }
}

}  // namespace
}  // namespace rnicd::test
