// How connections by address end, what listeners may do when they hear of it, and what happens at once.

#include <thread>

#include "tests/provider_contract/connector_fixture.h"

namespace rnicd::provider {
namespace {

using DisconnectContract = ConnectorContract;

INSTANTIATE_TEST_SUITE_P(Provider, DisconnectContract, ::testing::ValuesIn(ConnectingCardKinds()), NameOf);

// What the active side hears, and the passive one.
const Events kNearMade = {"accepted", "established"};
const Events kNearOver = {"accepted", "established", "disconnected"};
const Events kFarMade = {"established"};
const Events kFarOver = {"established", "disconnected"};

TEST_P(DisconnectContract, TheSideThatBeginsWaitsForTheOther) {
  for (const bool near_begins : {true, false}) {
    ProviderSide near(near_);
    ProviderSide far(far_);
    ASSERT_NO_FATAL_FAILURE(Establish(near, far));
    ASSERT_TRUE(Disconnect(near_begins ? near_end_ : far_end_).ok());
    ExpectEvents(near_begins ? kNearMade : kNearOver, near_begins ? kFarOver : kFarMade);
    ASSERT_TRUE(Disconnect(near_begins ? far_end_ : near_end_).ok());
    ExpectEvents(kNearOver, kFarOver);
    Clear();
  }
}

TEST_P(DisconnectContract, BothSidesMayBeginAtOnce) {
  ASSERT_NO_FATAL_FAILURE(Establish());
  ASSERT_TRUE(Disconnect(near_end_).ok());
  ASSERT_TRUE(Disconnect(far_end_).ok());
  ExpectEvents(kNearOver, kFarOver);
}

TEST_P(DisconnectContract, TheEndOfAConnectorEndsItsConnection) {
  ASSERT_NO_FATAL_FAILURE(Establish());
  Destroy(near_end_);
  ExpectEvents(kNearMade, kFarOver);
  ASSERT_TRUE(Disconnect(far_end_).ok());
  ExpectEvents(kNearMade, kFarOver);
}

TEST_P(DisconnectContract, TheEndOfThePeersConnectorAnswersDisconnect) {
  ASSERT_NO_FATAL_FAILURE(Establish());
  ASSERT_TRUE(Disconnect(near_end_).ok());
  ASSERT_EQ(far_end_.events->WaitFor(2), kFarOver);
  Destroy(far_end_);
  ExpectEvents(kNearOver, kFarOver);
}

TEST_P(DisconnectContract, AConnectorThatHasDisconnectedEndsUnnoticed) {
  ASSERT_NO_FATAL_FAILURE(Establish());
  ASSERT_TRUE(Disconnect(near_end_).ok());
  Destroy(near_end_);
  ExpectEvents(kNearMade, kFarOver);
}

TEST_P(DisconnectContract, AConnectorTakesOnlyTheCallsOfItsState) {
  ASSERT_NO_FATAL_FAILURE(Request());
  EXPECT_TRUE(FailedWith(Complete(), ErrorReason::CONNECTOR_STATE));
  EXPECT_TRUE(FailedWith(Disconnect(near_end_), ErrorReason::CONNECTOR_STATE));
  Clear();
  ASSERT_NO_FATAL_FAILURE(Establish());
  EXPECT_TRUE(FailedWith(Connect(near_end_, near_), ErrorReason::CONNECTOR_STATE));
  ASSERT_TRUE(Disconnect(near_end_).ok());
  EXPECT_TRUE(FailedWith(Disconnect(near_end_), ErrorReason::CONNECTOR_STATE));
}

TEST_P(DisconnectContract, TheSameQueuePairCannotBeBothEnds) {
  ASSERT_NO_FATAL_FAILURE(Request());
  ASSERT_TRUE(far_end_.connector->Accept(near_.pair(), kLimits).ok());
  // A card may find it now, or when both ends are to send.
  const Events heard = near_end_.events->WaitFor(1);
  if (heard == Events{"accepted"}) {
    EXPECT_TRUE(Complete().ok());
  } else {
    EXPECT_EQ(heard, Events{"CONNECTION_REFUSED"});
  }
  EXPECT_EQ(far_end_.events->WaitFor(1), Events{"QP_NOT_CONNECTABLE"});
}

// --- listeners that call ---

TEST_P(DisconnectContract, EveryStepMayBeTakenByAListener) {
  requests_->on_request = [&](ConnectionRequest& request, RecordingConnector&) {
    EXPECT_TRUE(request.connector->Accept(far_.pair(), kLimits).ok());
    return true;
  };
  near_end_.events->on_event = [&](std::string_view event) {
    EXPECT_TRUE(event != "accepted" || Complete().ok());
    EXPECT_TRUE(event != "established" || Disconnect(near_end_).ok());
  };
  ASSERT_NO_FATAL_FAILURE(Request());
  EXPECT_EQ(far_end_.events->WaitFor(2), kFarOver);
  ASSERT_TRUE(Disconnect(far_end_).ok());
  ExpectEvents(kNearOver, kFarOver);
}

TEST_P(DisconnectContract, TheActiveEndMayBeDestroyedByItsListener) {
  for (const std::string_view last : {"accepted", "established", "disconnected"}) {
    ProviderSide near(near_);
    ProviderSide far(far_);
    near_end_.events->on_event = [&](std::string_view event) {
      if (event == last) {
        Destroy(near_end_);
      }
    };
    ASSERT_NO_FATAL_FAILURE(Answer(near, far));
    if (last == "accepted") {
      ExpectEvents({"accepted"}, {"CONNECTION_ABORTED"});
    } else if (last == "established") {
      ASSERT_TRUE(Complete().ok());
      ExpectEvents(kNearMade, kFarOver);
    } else {
      ASSERT_TRUE(Complete().ok());
      ASSERT_EQ(far_end_.events->WaitFor(1), kFarMade);
      Destroy(far_end_);
      ExpectEvents(kNearOver, kFarMade);
    }
    Clear();
  }
}

TEST_P(DisconnectContract, ThePassiveEndMayBeDestroyedByItsListener) {
  for (const std::string_view last : {"established", "disconnected"}) {
    ProviderSide near(near_);
    ProviderSide far(far_);
    requests_->on_request = [&](ConnectionRequest&, RecordingConnector& events) {
      events.on_event = [&](std::string_view event) {
        if (event == last) {
          Destroy(far_end_);
        }
      };
      return true;
    };
    if (last == "established") {
      ASSERT_NO_FATAL_FAILURE(Answer(near, far));
      ASSERT_TRUE(Complete().ok());
      ExpectEvents(kNearOver, kFarMade);
    } else {
      ASSERT_NO_FATAL_FAILURE(Establish(near, far));
      Destroy(near_end_);
      ExpectEvents(kNearMade, kFarOver);
    }
    Clear();
  }
}

TEST_P(DisconnectContract, AnEndMayBeDestroyedByTheListenerThatHearsOfItsFailure) {
  near_end_.events->on_event = [&](std::string_view) { Destroy(near_end_); };
  requests_->on_request = [](ConnectionRequest& request, RecordingConnector&) {
    request.connector = nullptr;
    return false;
  };
  ASSERT_TRUE(Connect(near_end_, near_).ok());
  ExpectEvents({"CONNECTION_REFUSED"}, {});
  EXPECT_EQ(near_end_.connector, nullptr);
}

TEST_P(DisconnectContract, AConnectionNeedsNoListener) {
  ASSERT_NO_FATAL_FAILURE(Answer());
  far_end_.events = std::make_shared<RecordingConnector>();
  ASSERT_TRUE(Complete().ok());
  ExpectEvents(kNearMade, {});
  ExpectPass(near_, far_);
}

// --- at once ---

TEST_P(DisconnectContract, DisconnectAndDestructionMayMeet) {
  for (int round = 0; round < 100; ++round) {
    ProviderSide near(near_);
    ProviderSide far(far_);
    ASSERT_NO_FATAL_FAILURE(Establish(near, far));
    const bool near_leaves = round % 2 == 0;
    std::thread destroyer([&] { (near_leaves ? near_end_ : far_end_).connector = nullptr; });
    EXPECT_TRUE((near_leaves ? far_end_ : near_end_).connector->Disconnect().ok());
    destroyer.join();
    ASSERT_EQ(near_leaves ? far_end_.events->WaitFor(2) : near_end_.events->WaitFor(3),
              near_leaves ? kFarOver : kNearOver)
        << "round " << round;
    Clear();
  }
}

TEST_P(DisconnectContract, AnEndMayLeaveWhileTheOtherGoesOn) {
  for (int round = 0; round < 100; ++round) {
    ProviderSide near(near_);
    ProviderSide far(far_);
    if (round % 2 == 0) {
      ASSERT_NO_FATAL_FAILURE(Request(near));
      std::thread destroyer([&] { near_end_.connector = nullptr; });
      const absl::Status accepted = far_end_.connector->Accept(far.pair(), kLimits);
      destroyer.join();
      EXPECT_EQ(far_end_.events->WaitFor(1), Events{"CONNECTION_ABORTED"}) << accepted;
    } else {
      ASSERT_NO_FATAL_FAILURE(Answer(near, far));
      std::thread destroyer([&] { far_end_.connector = nullptr; });
      EXPECT_TRUE(near_end_.connector->CompleteConnect(kLimits).ok());
      destroyer.join();
      const std::string last = near_end_.events->WaitFor(2).back();
      EXPECT_TRUE(last == "CONNECTION_ABORTED" || near_end_.events->WaitFor(3) == kNearOver) << last;
    }
    Clear();
  }
}

}  // namespace
}  // namespace rnicd::provider
