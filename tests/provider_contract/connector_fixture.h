#pragma once

#include <memory>

#include "provider/api/recording_connector_test.h"
#include "tests/provider_contract/contract_fixture.h"

namespace rnicd::provider {

inline constexpr uint16_t kPort = 4242;

// One side of a connection by address.
struct ConnectionEnd {
  std::unique_ptr<DeviceConnector> connector;
  std::shared_ptr<RecordingConnector> events = std::make_shared<RecordingConnector>();
};

// Near, the active side, connects to far, which listens.
class ConnectorContract : public ProviderContract {
 protected:
  static inline const ConnectionOffer kLimits{.inbound_read_limit = 1, .outbound_read_limit = 1};

  NetworkAddress Local(uint16_t port) { return {.ip = near_.adapter().addresses().front(), .port = port}; }
  std::unique_ptr<DeviceListener> Listen(const std::shared_ptr<RecordingRequests>& requests, uint16_t port = kPort) {
    auto listener = far_.adapter().Listen(Local(port), requests);
    EXPECT_TRUE(listener.ok()) << listener.status();
    return *std::move(listener);
  }
  // Makes the connector if there is none.
  absl::Status Connect(ConnectionEnd& active, ProviderSide& side, const ConnectionOffer& offer = kLimits,
                       uint16_t port = kPort) {
    MutexLock lock(calls_);
    if (active.connector == nullptr) {
      active.connector = *side.adapter().CreateConnector(active.events);
    }
    return active.connector->Connect(side.pair(), {.local = Local(next_port_++), .peer = Local(port)}, offer);
  }
  absl::Status Complete() {
    MutexLock lock(calls_);
    return near_end_.connector->CompleteConnect(kLimits);
  }
  absl::Status Disconnect(ConnectionEnd& end) {
    MutexLock lock(calls_);
    return end.connector->Disconnect();
  }
  void Destroy(ConnectionEnd& end) {
    MutexLock lock(calls_);
    end.connector = nullptr;
  }
  static ConnectionEnd Take(RecordingRequests& requests) {
    RecordingRequests::Taken taken = requests.Take();
    return {.connector = std::move(taken.request.connector), .events = std::move(taken.events)};
  }
  // Up to the request, the answer, the end of both calls.
  void Request(ProviderSide& near) {
    ASSERT_TRUE(Connect(near_end_, near).ok());
    far_end_ = Take(*requests_);
    ASSERT_NE(far_end_.connector, nullptr);
  }
  void Answer(ProviderSide& near, ProviderSide& far) {
    ASSERT_NO_FATAL_FAILURE(Request(near));
    ASSERT_TRUE(far_end_.connector->Accept(far.pair(), kLimits).ok());
    ASSERT_EQ(near_end_.events->WaitFor(1), Events{"accepted"});
  }
  void Establish(ProviderSide& near, ProviderSide& far) {
    ASSERT_NO_FATAL_FAILURE(Answer(near, far));
    ASSERT_TRUE(Complete().ok());
    ASSERT_EQ(near_end_.events->WaitFor(2), (Events{"accepted", "established"}));
    ASSERT_EQ(far_end_.events->WaitFor(1), Events{"established"});
  }
  void Request() { Request(near_); }
  void Answer() { Answer(near_, far_); }
  void Establish() { Establish(near_, far_); }
  // For the next connection.
  void Clear() {
    near_end_ = {};
    far_end_ = {};
  }
  // All that either side hears.
  void ExpectEvents(const Events& near, const Events& far) {
    EXPECT_EQ(near_end_.events->WaitFor(near.size()), near);
    EXPECT_EQ(far_end_.events->WaitFor(far.size()), far);
    card_->Settle();
    EXPECT_EQ(near_end_.events->WaitFor(0), near);
    EXPECT_EQ(far_end_.events->WaitFor(0), far);
  }
  static void ExpectPass(ProviderSide& from, ProviderSide& to) {
    const size_t sent = from.initiated().size() + 1;
    const size_t received = to.received().size() + 1;
    to.Post(Receive(received));
    from.Post(Send(sent));
    ASSERT_TRUE(to.Received(received) && from.Initiated(sent));
    EXPECT_EQ(from.initiated().back(), (Outcome{sent, kSent, kOk}));
    EXPECT_EQ(to.received().back(), (Outcome{received, kReceived, kOk}));
  }

  const std::shared_ptr<RecordingRequests> requests_ = std::make_shared<RecordingRequests>();
  std::unique_ptr<DeviceListener> listener_ = Listen(requests_);
  ConnectionEnd near_end_;
  ConnectionEnd far_end_;

 private:
  // A connector takes one call at a time, and listeners call it too.
  Mutex calls_;
  uint16_t next_port_ = 50000;
};

}  // namespace rnicd::provider
