// What listeners and connectors make of events, whenever these come. What the calls do is tested with the real daemon.
#include "client/cpp/connector.h"

#include <chrono>
#include <future>
#include <optional>

#include "base/status.h"
#include "client/cpp/client.h"
#include "client/cpp/completion_queue.h"
#include "client/cpp/listener.h"
#include "client/cpp/objects/fake_daemon_fixture.h"
#include "client/cpp/queue_pair.h"
#include "client/cpp/transport_failure.h"
#include "rnicd/v1/connection_service.pb.h"

namespace rnicd::inline client {
namespace {

// Only a failing test waits so long.
constexpr std::chrono::seconds kEventTimeout{20};
constexpr uint64_t kListenerNumber = 5;
constexpr uint64_t kConnectorNumber = 7;

v1::WatchEventsResponse RequestFor(uint64_t connector) {
  v1::WatchEventsResponse event;
  event.mutable_connect_event()->set_listener_id(kListenerNumber);
  event.mutable_connect_event()->set_connector_id(connector);
  return event;
}

class ConnectorTest : public testing::Test {
 protected:
  ConnectorTest() {
    v1::OpenSessionResponse session;
    session.set_session_id(1);
    session.set_fd_socket_name("fd.sock");
    daemon_.Answer("OpenSession", session);
    v1::CreateListenerResponse created;
    created.set_listener_id(kListenerNumber);
    daemon_.Answer("CreateListener", created);
    v1::ListenResponse listening;
    listening.mutable_local()->set_address("10.0.0.1");
    listening.mutable_local()->set_port(50000);
    listening.set_full_name("pods/array");
    daemon_.Answer("Listen", listening);
    v1::CreateConnectorResponse connector;
    connector.set_connector_id(kConnectorNumber);
    daemon_.Answer("CreateConnector", connector);
    v1::CreateQpResponse pair;
    pair.set_qp_id(1);
    pair.set_address("address");
    daemon_.Answer("CreateQp", pair);
  }

  Client Connect(std::function<void(const absl::Status&)> on_session_ended = nullptr) {
    return Client::Connect({.socket_dir = daemon_.socket_dir(), .on_session_ended = std::move(on_session_ended)})
        .value();
  }

  FakeDaemon daemon_;
};

TEST_F(ConnectorTest, RequestsComeOnceAndInTheirOrder) {
  const Client client = Connect();
  Listener listener = Listener::Listen(client, {.name = "array"}).value();
  EXPECT_EQ(listener.local().ToText(), "10.0.0.1:50000");
  EXPECT_EQ(listener.full_name(), "pods/array");
  daemon_.SendEvent(RequestFor(kConnectorNumber));
  daemon_.SendEvent(RequestFor(kConnectorNumber + 1));
  EXPECT_EQ(listener.NextRequest(kEventTimeout).value().id(), ConnectorId{kConnectorNumber});
  EXPECT_EQ(listener.NextRequest(kEventTimeout).value().id(), ConnectorId{kConnectorNumber + 1});
  EXPECT_TRUE(
      FailedWith(listener.NextRequest(std::chrono::milliseconds(0)).status(), ErrorReason::CONNECTION_TIMED_OUT));
}

TEST_F(ConnectorTest, AddressThatIsNoneIsATransportFailureAndTheListenerIsClosed) {
  const Client client = Connect();
  daemon_.Answer("Listen", v1::ListenResponse());
  EXPECT_TRUE(IsTransportFailure(Listener::Listen(client).status()));
  EXPECT_EQ(daemon_.Calls("CloseListener"), 1);
}

TEST_F(ConnectorTest, RequestsThatNobodyTakesAreRejected) {
  std::promise<absl::Status> ended;
  const Client client = Connect([&ended](const absl::Status& why) { ended.set_value(why); });
  {
    Listener listener = Listener::Listen(client).value();
    daemon_.SendEvent(RequestFor(kConnectorNumber));
    daemon_.SendEvent(RequestFor(kConnectorNumber + 1));
    // The second is here before it, or comes to a listener that is gone.
    EXPECT_TRUE(listener.NextRequest(kEventTimeout).value().Close().ok());
  }
  daemon_.SendEvent(RequestFor(kConnectorNumber + 2));
  daemon_.EndEvents(grpc::Status::OK);
  ASSERT_EQ(ended.get_future().wait_for(kEventTimeout), std::future_status::ready);
  EXPECT_EQ(daemon_.Calls("CloseConnector"), 3);
}

TEST_F(ConnectorTest, DisconnectionReachesTheCallbackAndEveryWaiter) {
  const Client client = Connect();
  const CompletionQueue queue = CompletionQueue::Create(client, 1).value();
  const QueuePair pair = QueuePair::Create(queue, queue, {}).value();
  std::promise<void> called;
  Connector connector =
      Connector::Establish(pair, "array", {.on_disconnected = [&called] { called.set_value(); }}).value();
  EXPECT_EQ(connector.WaitForDisconnect(std::chrono::milliseconds(0)).value(), false);
  v1::WatchEventsResponse event;
  event.mutable_disconnect_event()->set_connector_id(kConnectorNumber);
  daemon_.SendEvent(event);
  EXPECT_EQ(called.get_future().wait_for(kEventTimeout), std::future_status::ready);
  EXPECT_EQ(connector.WaitForDisconnect(kEventTimeout).value(), true);
  EXPECT_EQ(connector.WaitForDisconnect(kEventTimeout).value(), true);
}

// Many rounds: a waiter that does not wait for the delivery of an event that another thread has taken misses some.
TEST_F(ConnectorTest, WaiterHearsOfWhatTheThreadOfCallbacksTakes) {
  const Client client = Connect([](const absl::Status&) {});
  Listener listener = Listener::Listen(client).value();
  for (uint64_t round = 1; round <= 500; ++round) {
    daemon_.SendEvent(RequestFor(round));
    ASSERT_TRUE(listener.NextRequest(kEventTimeout).ok()) << round;
  }
}

TEST_F(ConnectorTest, EndOfSessionEndsEveryWait) {
  const Client client = Connect();
  Listener listener = Listener::Listen(client).value();
  Connector connector = Connector::Create(client).value();
  v1::WatchEventsResponse event;
  event.mutable_session_ending()->set_cause("evicted");
  daemon_.SendEvent(event);
  daemon_.EndEvents(grpc::Status::OK);
  EXPECT_TRUE(FailedWith(listener.NextRequest(kEventTimeout).status(), ErrorReason::SESSION_ENDING));
  EXPECT_TRUE(FailedWith(connector.WaitForDisconnect(kEventTimeout).status(), ErrorReason::SESSION_ENDING));
}

TEST_F(ConnectorTest, QueuePairOfAnotherSessionIsRefusedHere) {
  const Client client = Connect();
  const Client other = Connect();
  const CompletionQueue queue = CompletionQueue::Create(other, 1).value();
  const QueuePair pair = QueuePair::Create(queue, queue, {}).value();
  Connector connector = Connector::Create(client).value();
  const absl::Status status = connector.Connect(pair, "array");
  EXPECT_TRUE(FailedWith(status, ErrorReason::OBJECT_NOT_FOUND));
  EXPECT_EQ(ErrorInfoOf(status).field, "qp_id");
  EXPECT_EQ(daemon_.Calls("Connect"), 0);
}

}  // namespace
}  // namespace rnicd::inline client
