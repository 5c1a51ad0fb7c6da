// Queue pairs: two clients move bytes between their memories, also over two adapters, and learn when the other has
// disconnected.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/admin_client.h"
#include "tests/support/calls/event_reader.h"
#include "tests/support/calls/expect.h"
#include "tests/support/process/tested_provider.h"
#include "tests/support/queue_client.h"
#include "tests/support/shared_daemon.h"

namespace rnicd::test {
namespace {

constexpr uint32_t kPayload = 64 * 1024;
constexpr uint32_t kEveryRight =
    v1::MR_FLAG_ALLOW_LOCAL_WRITE | v1::MR_FLAG_ALLOW_REMOTE_READ | v1::MR_FLAG_ALLOW_REMOTE_WRITE;

// Bytes that differ from their neighbours, between pages and between seeds.
std::string Pattern(uint32_t seed) {
  std::string text(kPayload, '\0');
  for (uint64_t index = 0; index < kPayload; ++index) {
    text[index] = static_cast<char>((index * 13 + index / kPage * 5 + uint64_t{seed} * 101) % 251);
  }
  return text;
}

// Memory of the payload's size, registered in a protection domain with every right.
struct Payload {
  Payload(TestSession& session, uint64_t mr_id)
      : memory(session, kPayload), registration(session.RegisterWhole(mr_id, memory.id(), kPayload, kEveryRight)) {}
  explicit Payload(TestSession& session) : Payload(session, session.CreateMr()) {}

  // The whole payload, in four pieces of different sizes.
  std::vector<v1::Sge> Pieces() const {
    const uint32_t token = registration.local_token();
    return {Sge(kBase, 1, token), Sge(kBase + 1, 4095, token), Sge(kBase + 4096, 40'000, token),
            Sge(kBase + 44'096, kPayload - 44'096, token)};
  }
  v1::Sge Whole() const { return Sge(kBase, kPayload, registration.local_token()); }
  std::string Text() const { return memory.Text(0, kPayload); }

  TestMemory memory;
  v1::Registration registration;
};

CallResult<v1::DisconnectQpResponse> Disconnect(TestQueue& queue) {
  v1::DisconnectQpRequest request;
  request.set_qp_id(queue.qp_id());
  return queue.session().Call(&QueueStub::DisconnectQp, request);
}

class QueuePairs : public DaemonTest {};

TEST_F(QueuePairs, SendsArriveInBothDirections) {
  ConnectedPair pair(daemon());
  Payload near(pair.near_session);
  Payload far(pair.far_session);
  near.memory.SetText(0, Pattern(1));
  pair.far.MustPost({ReceiveRequest({far.Whole()})});
  pair.near.MustRun(SendRequest(near.Pieces()));
  EXPECT_EQ(pair.far.NextReceive().result().bytes_transferred(), kPayload);
  EXPECT_TRUE(far.Text() == Pattern(1));
  far.memory.SetText(0, Pattern(2));
  pair.near.MustPost({ReceiveRequest(near.Pieces())});
  pair.far.MustRun(SendRequest({far.Whole()}));
  EXPECT_EQ(pair.near.NextReceive().result().bytes_transferred(), kPayload);
  EXPECT_TRUE(near.Text() == Pattern(2));
}

// Each request uses the result of the previous one, so that any other order would be detected.
TEST_F(QueuePairs, ChainIsExecutedInOrder) {
  ConnectedPair pair(daemon());
  Payload near(pair.near_session);
  Payload far(pair.far_session);
  const uint32_t token = far.registration.remote_token();
  near.memory.SetText(0, Pattern(5));
  pair.far.MustPost({ReceiveRequest({far.Whole()}), ReceiveRequest({})});
  pair.near.MustPost({SendRequest({near.Whole()}, 0, 1),
                      WriteRequest({InlineSge("written")}, kBase + 4090, token, v1::OP_FLAG_INLINE, 2),
                      ReadRequest({near.Whole()}, kBase, token, 0, 3), SendRequest({}, v1::OP_FLAG_READ_FENCE, 4)});
  for (uint64_t context = 1; context <= 4; ++context) {
    const v1::CqResultEx completion = pair.near.NextInitiator();
    EXPECT_EQ(completion.result().ntstatus(), kStatusSuccess);
    EXPECT_EQ(completion.result().request_context(), context);
  }
  std::string expected = Pattern(5);
  expected.replace(4090, 7, "written");
  EXPECT_TRUE(near.Text() == expected);
  EXPECT_TRUE(far.Text() == expected);
}

// Closes near's session and returns the number of disconnects that it received until then.
int DisconnectsUntilEnd(ConnectedPair& pair, EventReader& events) {
  ExpectOk(pair.near_session.CloseSession());
  int count = 0;
  for (const v1::WatchEventsResponse& event : events.RestUntilEnd()) {
    if (event.has_qp_disconnected()) {
      EXPECT_EQ(event.qp_disconnected().qp_id(), pair.near.qp_id());
      ++count;
    }
  }
  return count;
}

class Disconnects : public DaemonTest {
 protected:
  // Expects that near gets exactly one disconnect event when far does this, whatever happens to either afterwards.
  void ExpectToldOnce(const std::function<void(ConnectedPair&)>& leave) {
    ConnectedPair pair(daemon(), {.qp_context = 0xfeed});
    EventReader events(pair.near_session);
    leave(pair);
    const std::optional<v1::WatchEventsResponse> event = events.Next();
    ASSERT_TRUE(event.has_value()) << "no word of the disconnect";
    ASSERT_TRUE(event->has_qp_disconnected()) << event->ShortDebugString();
    EXPECT_EQ(event->qp_disconnected().qp_id(), pair.near.qp_id());
    EXPECT_EQ(event->qp_disconnected().qp_context(), 0xfeedu);
    // All but the first of these find the peer already disconnected.
    pair.far_session.CloseSession();
    EXPECT_NE(pair.near.Run(SendRequest({})).result().ntstatus(), kStatusSuccess);
    ExpectOk(CloseQp(pair.near_session, pair.near.qp_id()));
    EXPECT_EQ(DisconnectsUntilEnd(pair, events), 0);
  }
};

TEST_F(Disconnects, OnceWhenThePeersSessionCloses) {
  ExpectToldOnce([](ConnectedPair& pair) { ExpectOk(pair.far_session.CloseSession()); });
}

TEST_F(Disconnects, OnceWhenThePeerDoesAllOfThem) {
  ExpectToldOnce([](ConnectedPair& pair) {
    ExpectOk(Disconnect(pair.far));
    ExpectOk(CloseQp(pair.far_session, pair.far.qp_id()));
    ExpectOk(pair.far_session.CloseSession());
  });
}

// The far side sends out of memory that it has not registered.
TEST_F(Disconnects, OnceWhenARequestOfThePeerFails) {
  ExpectToldOnce([](ConnectedPair& pair) {
    pair.near.MustPost({ReceiveRequest({})});
    EXPECT_NE(pair.far.Run(SendRequest({Sge(kBase, 8, 1)})).result().ntstatus(), kStatusSuccess);
  });
}

TEST_F(Disconnects, TheSideThatEndsItIsNotTold) {
  ConnectedPair pair(daemon());
  EventReader events(pair.near_session);
  ExpectOk(Disconnect(pair.near));
  ExpectOk(Disconnect(pair.far));
  ExpectOk(pair.far_session.CloseSession());
  EXPECT_EQ(DisconnectsUntilEnd(pair, events), 0);
}

// The objects of a peer on a given adapter.
class NamedAdapterPeer {
 public:
  NamedAdapterPeer(TestSession& session, const std::string& adapter) : session_(session) {
    v1::OpenAdapterRequest open;
    open.set_adapter_name(adapter);
    adapter_id_ = Made(session.Call(&AdapterStub::OpenAdapter, open)).adapter_id();
    v1::CreatePdRequest domain;
    domain.set_adapter_id(adapter_id_);
    pd_id_ = Made(session.Call(&MemoryStub::CreatePd, domain)).pd_id();
    v1::CreateCqRequest queue;
    queue.set_adapter_id(adapter_id_);
    queue.set_cq_depth(16);
    cq_id_ = Made(session.Call(&QueueStub::CreateCq, queue)).cq_id();
  }

  uint64_t CreateMr() {
    v1::CreateMrRequest request;
    request.set_pd_id(pd_id_);
    return Made(session_.Call(&MemoryStub::CreateMr, request)).mr_id();
  }
  v1::CreateQpRequest QpRequest() const {
    v1::CreateQpRequest request;
    request.set_pd_id(pd_id_);
    request.set_receive_cq_id(cq_id_);
    request.set_initiator_cq_id(cq_id_);
    request.set_receive_queue_depth(8);
    request.set_initiator_queue_depth(8);
    request.set_max_receive_request_sge(4);
    request.set_max_initiator_request_sge(4);
    return request;
  }
  // Connects the two queue pairs with each other.
  void Connect(TestQueue& other) {
    qp_id_ = Made(session_.Call(&QueueStub::CreateQp, QpRequest())).qp_id();
    v1::QueryQpRequest query;
    query.set_qp_id(qp_id_);
    ExpectOk(test::Connect(other, Made(session_.Call(&QueueStub::QueryQp, query)).address()));
    v1::ConnectQpRequest connect;
    connect.set_qp_id(qp_id_);
    connect.set_peer_address(other.Query().address());
    ExpectOk(session_.Call(&QueueStub::ConnectQp, connect));
  }
  // Posts the request and waits until it succeeds.
  void MustRun(const v1::WorkRequest& request) {
    MustPost(request);
    MustComplete();
  }
  void MustPost(const v1::WorkRequest& request) {
    v1::PostRequest post;
    post.set_qp_id(qp_id_);
    *post.add_requests() = request;
    EXPECT_EQ(Made(session_.Call(&QueueStub::Post, post)).posted(), 1u);
  }
  void MustComplete() {
    v1::GetCqResultsRequest request;
    request.set_cq_id(cq_id_);
    request.set_max_results(1);
    CallResult<v1::GetCqResultsResponse> results;
    EXPECT_TRUE(Eventually([&] {
      results = session_.Call(&QueueStub::GetCqResults, request);
      return results.response.results_size() == 1;
    })) << "no completion came";
    if (results.response.results_size() == 1) {
      EXPECT_EQ(results.response.results(0).ntstatus(), kStatusSuccess);
    }
  }

 private:
  template <typename Response>
  static Response Made(const CallResult<Response>& result) {
    ExpectOk(result);
    return result.response;
  }

  TestSession& session_;
  uint64_t adapter_id_ = 0;
  uint64_t pd_id_ = 0;
  uint64_t cq_id_ = 0;
  uint64_t qp_id_ = 0;
};

class TwoAdapters : public DaemonTest {
 protected:
  TwoAdapters() : DaemonTest(TwoAdapterFlags()) {}
};

TEST_F(TwoAdapters, QueuePairsOfDifferentAdaptersExchangeBytes) {
  TestSession near_session(daemon());
  TestSession far_session(daemon());
  TestQueue near(near_session);
  NamedAdapterPeer far(far_session, OtherAdapterUnderTest());
  far.Connect(near);
  Payload near_memory(near_session);
  Payload far_memory(far_session, far.CreateMr());
  const uint32_t far_token = far_memory.registration.remote_token();
  near_memory.memory.SetText(0, Pattern(1));
  far.MustPost(ReceiveRequest({far_memory.Whole()}));
  near.MustRun(SendRequest(near_memory.Pieces()));
  far.MustComplete();
  EXPECT_TRUE(far_memory.Text() == Pattern(1));
  near_memory.memory.SetText(0, Pattern(2));
  near.MustRun(WriteRequest({near_memory.Whole()}, kBase, far_token));
  EXPECT_TRUE(far_memory.Text() == Pattern(2));
  far_memory.memory.SetText(0, Pattern(3));
  near.MustRun(ReadRequest(near_memory.Pieces(), kBase, far_token));
  EXPECT_TRUE(near_memory.Text() == Pattern(3));
  near_memory.memory.SetText(0, Pattern(4));
  far.MustRun(ReadRequest(far_memory.Pieces(), kBase, near_memory.registration.remote_token()));
  EXPECT_TRUE(far_memory.Text() == Pattern(4));
}

}  // namespace
}  // namespace rnicd::test
