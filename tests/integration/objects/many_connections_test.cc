// Many clients connect to one listener and disconnect again, and nothing is left of that.
#include <cstdint>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/admin_client.h"
#include "tests/support/connection_client.h"
#include "tests/support/process/wait.h"
#include "tests/support/shared_daemon.h"

namespace rnicd::test {
namespace {

constexpr QueueOptions kTinyQueue = {.cq_depth = 2, .receive_queue_depth = 1, .initiator_queue_depth = 1};
constexpr int kConnectingClients = 64;

void CloseQueue(TestSession& session, const TestQueue& queue) {
  ExpectOk(CloseQp(session, queue.qp_id()));
  ExpectOk(CloseCq(session, queue.initiator_cq_id()));
  ExpectOk(CloseCq(session, queue.receive_cq_id()));
}

// Accepts every request, and disconnects when the peer does. All its calls are of the thread that reads its events.
class Acceptor {
 public:
  explicit Acceptor(DaemonProcess& daemon)
      : session_(daemon, "acceptor"),
        listener_(session_),
        events_(session_, [this](const v1::WatchEventsResponse& event) { OnEvent(event); }) {}

  const v1::NetworkAddress& address() const { return listener_.local; }
  uint64_t connectors() { return session_.Use("connectors").used(); }

 private:
  void OnEvent(const v1::WatchEventsResponse& event) {
    if (event.has_connect_event()) {
      const uint64_t id = event.connect_event().connector_id();
      const auto [entry, added] = queues_.try_emplace(id, session_, kTinyQueue);
      ExpectPends(Accept(session_, AnswerTo(id, entry->second)));
    } else if (event.has_disconnect_event()) {
      const uint64_t id = event.disconnect_event().connector_id();
      ExpectPends(Disconnect(session_, id, id));
    } else if (event.request_completed().kind() == v1::REQUEST_KIND_DISCONNECT) {
      End(event.request_completed());
    }
  }

  void End(const v1::RequestCompleted& completion) {
    const uint64_t id = completion.object_id();
    ExpectDone(completion, v1::REQUEST_KIND_DISCONNECT, id, id);
    ExpectOk(CloseConnector(session_, id));
    CloseQueue(session_, queues_.at(id));
    queues_.erase(id);
  }

  TestSession session_;
  TestListener listener_;
  std::map<uint64_t, TestQueue> queues_;
  EventReader events_;
};

void ConnectAndDisconnect(TestSession& session, const v1::NetworkAddress& address) {
  const TestQueue queue(session, kTinyQueue);
  const uint64_t id = CreateConnector(session);
  v1::ConnectRequest request = RequestTo(id, queue, address);
  request.set_allow_pending(false);
  ExpectOk(Connect(session, request));
  ExpectOk(CompleteConnect(session, id));
  ExpectOk(Disconnect(session, id));
  ExpectOk(CloseConnector(session, id));
  CloseQueue(session, queue);
}

class ManyConnections : public DaemonTest {
 protected:
  void ConnectFromManyClients(int times) {
    Acceptor acceptor(daemon());
    std::vector<std::thread> clients;
    for (int client = 0; client < kConnectingClients; ++client) {
      clients.emplace_back([&] {
        TestSession session(daemon(), "client");
        for (int count = 0; count < times && !HasFailure(); ++count) {
          ConnectAndDisconnect(session, acceptor.address());
        }
      });
    }
    for (std::thread& client : clients) {
      client.join();
    }
    EXPECT_TRUE(Eventually([&] { return acceptor.connectors() == 0; }));
    EXPECT_THAT(AdminConnections(daemon()), testing::IsEmpty());
    EXPECT_EQ(AdminListeners(daemon()).at(0).reported(), static_cast<uint64_t>(kConnectingClients) * times);
  }
};

TEST_F(ManyConnections, LeaveNothing) {
  constexpr int kTimes = 16;
  ConnectFromManyClients(kTimes);
}

class ManyConnectionsNight : public ManyConnections {};

TEST_F(ManyConnectionsNight, LeaveNothingAThousandTimesAClient) {
  constexpr int kTimes = 1000;
  ConnectFromManyClients(kTimes);
}

}  // namespace
}  // namespace rnicd::test
