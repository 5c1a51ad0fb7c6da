#include "provider/engine/engine_connection.h"

#include <vector>

#include "provider/engine/scripted_card_fake.h"

namespace rnicd::provider {
namespace {

using Phase = EngineConnection::Phase;

// A connection to an engine of this process.
struct Connecting {
  Connecting() { EXPECT_TRUE(connection.Begin().ok() && connection.End(EnginePeer{"far", far}).ok()); }

  EngineFabric fabric;
  EngineSide side{fabric, "far"};
  std::shared_ptr<QueuePairEngine> far = side.engine().shared_from_this();
  EngineConnection connection;
};

TEST(EngineConnection, OnlyAPeerOfThisProcessIsAwaited) {
  Connecting local;
  EXPECT_EQ(local.connection.phase(), Phase::kAwaitingPeer);
  EXPECT_FALSE(local.connection.SetPeerReady("stranger"));
  EXPECT_EQ(local.connection.phase(), Phase::kAwaitingPeer);
  EXPECT_TRUE(local.connection.SetPeerReady("far"));
  EXPECT_EQ(local.connection.phase(), Phase::kConnected);

  EngineConnection remote;
  ASSERT_TRUE(remote.Begin().ok() && remote.End(EnginePeer{"elsewhere", nullptr}).ok());
  EXPECT_EQ(remote.phase(), Phase::kConnected);
  EXPECT_FALSE(remote.peer_is_local());
}

TEST(EngineConnection, ConnectIsRefusedUnlessItIsTheOnlyOne) {
  EngineConnection connection;
  ASSERT_TRUE(connection.Begin().ok());
  EXPECT_EQ(connection.state(), QueuePairState::kInit);
  EXPECT_TRUE(FailedWith(connection.Begin(), ErrorReason::QP_NOT_CONNECTABLE)) << "one is under way";
  EXPECT_TRUE(FailedWith(connection.End(MakeError(ErrorReason::QP_ADDRESS_UNKNOWN)), ErrorReason::QP_ADDRESS_UNKNOWN));
  ASSERT_TRUE(connection.Begin().ok()) << "that one changed nothing";
  ASSERT_TRUE(connection.Fail());
  EXPECT_TRUE(FailedWith(connection.End(EnginePeer{"far", nullptr}), ErrorReason::QP_NOT_CONNECTABLE));
  EXPECT_EQ(connection.state(), QueuePairState::kError);
  EXPECT_FALSE(connection.IsTo("far"));
}

TEST(EngineConnection, ADeadPeerIsReportedOnceAndNotToItself) {
  Connecting side;
  EXPECT_FALSE(side.connection.LosePeer("far")) << "it is its own peer";
  EXPECT_TRUE(side.connection.LosePeer("near"));
  EXPECT_FALSE(side.connection.LosePeer("near"));
  EXPECT_EQ(side.connection.state(), QueuePairState::kReadyToSend);
  EXPECT_TRUE(side.connection.SetPeerReady("far"));
  EXPECT_EQ(side.connection.phase(), Phase::kPeerLost) << "it stays dead";
}

TEST(EngineConnection, APeerIsNotReportedAfterAFailure) {
  Connecting side;
  EXPECT_TRUE(side.connection.Fail());
  EXPECT_FALSE(side.connection.Fail());
  EXPECT_FALSE(side.connection.LosePeer("near"));
}

TEST(EngineConnection, TheEndIsForThePeerAndForThoseThatCameBeforeTheConnect) {
  Connecting side;
  side.connection.AddVisitor("late", side.far);
  EngineConnection::Engines told = side.connection.TakeAll();
  EXPECT_EQ(told.size(), 1u) << "it was told when it came";
  EXPECT_TRUE(told.contains("far"));
  EXPECT_EQ(side.connection.phase(), Phase::kEnded);

  EngineConnection alone;
  alone.AddVisitor("early", side.far);
  alone.AddVisitor("gone", side.far);
  alone.RemoveVisitor("gone");
  ASSERT_TRUE(alone.Fail());
  told = alone.TakeAll();
  EXPECT_TRUE(told.contains("early"));
  EXPECT_FALSE(told.contains("gone"));
}

}  // namespace
}  // namespace rnicd::provider
