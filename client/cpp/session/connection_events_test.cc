#include "client/cpp/session/connection_events.h"

#include "base/status.h"
#include "gtest/gtest.h"

namespace rnicd::inline client {
namespace {

constexpr ListenerId kListener{5};
constexpr ConnectorId kFirst{7};
constexpr ConnectorId kSecond{8};

v1::ConnectEvent RequestTo(ListenerId listener, ConnectorId connector) {
  v1::ConnectEvent event;
  event.set_listener_id(listener.value);
  event.set_connector_id(connector.value);
  return event;
}

v1::DisconnectEvent EndOf(ConnectorId connector) {
  v1::DisconnectEvent event;
  event.set_connector_id(connector.value);
  return event;
}

TEST(ConnectionEvents, RequestsWaitInTheirOrder) {
  ConnectionEvents events;
  events.Watch(kListener);
  EXPECT_FALSE(events.TakeRequest(kListener).has_value());
  EXPECT_TRUE(events.Deliver(RequestTo(kListener, kFirst)));
  EXPECT_TRUE(events.Deliver(RequestTo(kListener, kSecond)));
  EXPECT_EQ(events.TakeRequest(kListener)->value(), kFirst);
  EXPECT_EQ(events.TakeRequest(kListener)->value(), kSecond);
  EXPECT_FALSE(events.TakeRequest(kListener).has_value());
}

TEST(ConnectionEvents, ForgottenListenerGivesItsRequestsBackAndTakesNoMore) {
  ConnectionEvents events;
  events.Watch(kListener);
  EXPECT_TRUE(events.Deliver(RequestTo(kListener, kFirst)));
  EXPECT_EQ(events.Remove(kListener).front(), kFirst);
  EXPECT_FALSE(events.Deliver(RequestTo(kListener, kSecond)));
}

TEST(ConnectionEvents, DisconnectionIsKeptForWhoeverAsks) {
  ConnectionEvents events;
  events.Watch(kFirst);
  events.Deliver(EndOf(kSecond));
  EXPECT_FALSE(events.DisconnectionOf(kFirst).has_value());
  events.Deliver(EndOf(kFirst));
  EXPECT_EQ(events.DisconnectionOf(kFirst), absl::OkStatus());
  EXPECT_EQ(events.DisconnectionOf(kFirst), absl::OkStatus());
  events.Remove(kFirst);
  EXPECT_FALSE(events.DisconnectionOf(kFirst).has_value());
}

TEST(ConnectionEvents, EndOfStreamComesBehindWhatCameBefore) {
  ConnectionEvents events;
  events.Watch(kListener);
  events.Watch(kFirst);
  events.Watch(kSecond);
  events.Deliver(EndOf(kFirst));
  EXPECT_TRUE(events.Deliver(RequestTo(kListener, kSecond)));
  events.Close(MakeError(ErrorReason::SESSION_ENDING, "evicted"));
  events.Close(MakeError(ErrorReason::INTERNAL_FAULT));
  EXPECT_EQ(events.TakeRequest(kListener)->value(), kSecond);
  EXPECT_EQ(ErrorInfoOf(events.TakeRequest(kListener)->status()).field, "evicted");
  EXPECT_EQ(events.DisconnectionOf(kFirst), absl::OkStatus());
  EXPECT_EQ(ErrorInfoOf(*events.DisconnectionOf(kSecond)).field, "evicted");
}

}  // namespace
}  // namespace rnicd::inline client
