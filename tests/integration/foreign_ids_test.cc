// Ids of queues, windows and mappings that belong to another session, or are unused: every call is refused as if the
// object did not exist, and its owner is not affected.
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/queue_client.h"
#include "tests/support/shared_daemon.h"

namespace rnicd::test {
namespace {

// One object of each kind.
struct Ids {
  uint64_t adapter = 0;
  uint64_t pd = 0;
  uint64_t cq = 0;
  uint64_t qp = 0;
  uint64_t fast_mr = 0;
  uint64_t normal_mr = 0;
  uint64_t mw = 0;
  uint64_t memory = 0;
  uint64_t lam = 0;
};

class ForeignIds : public DaemonTest {
 protected:
  template <typename Response>
  static void ExpectNotFound(const CallResult<Response>& refused, const std::string& field,
                             Where where = Where::current()) {
    ExpectRefused(refused, ErrorReason::OBJECT_NOT_FOUND, field, where);
  }

  // Calls on completion queues.
  static void TryQueues(TestSession& session, const Ids& ids) {
    v1::CreateCqRequest create;
    create.set_adapter_id(ids.adapter);
    create.set_cq_depth(1);
    ExpectNotFound(session.Call(&QueueStub::CreateCq, create), "adapter_id");
    v1::ResizeCqRequest resize;
    resize.set_cq_id(ids.cq);
    resize.set_cq_depth(1);
    ExpectNotFound(session.Call(&QueueStub::ResizeCq, resize), "cq_id");
    ExpectNotFound(Arm(session, ids.cq, v1::CQ_NOTIFY_TYPE_ANY), "cq_id");
    v1::GetCqResultsRequest results;
    results.set_cq_id(ids.cq);
    results.set_max_results(10);
    ExpectNotFound(session.Call(&QueueStub::GetCqResults, results), "cq_id");
    v1::GetCqResultsExRequest results_ex;
    results_ex.set_cq_id(ids.cq);
    results_ex.set_max_results(10);
    ExpectNotFound(session.Call(&QueueStub::GetCqResultsEx, results_ex), "cq_id");
    ExpectNotFound(CloseCq(session, ids.cq), "cq_id");
    ExpectNotFound(CloseCq(session, ids.cq, true), "cq_id");
  }

  // Calls on queue pairs; `own` are the caller's objects.
  static void TryQueuePairs(TestSession& session, const Ids& own, const Ids& ids) {
    v1::CreateQpRequest create;
    create.set_pd_id(own.pd);
    create.set_receive_cq_id(own.cq);
    create.set_initiator_cq_id(ids.cq);
    ExpectNotFound(session.Call(&QueueStub::CreateQp, create), "initiator_cq_id");
    create.set_initiator_cq_id(own.cq);
    create.set_receive_cq_id(ids.cq);
    ExpectNotFound(session.Call(&QueueStub::CreateQp, create), "receive_cq_id");
    create.set_receive_cq_id(own.cq);
    create.set_pd_id(ids.pd);
    ExpectNotFound(session.Call(&QueueStub::CreateQp, create), "pd_id");
    v1::QueryQpRequest query;
    query.set_qp_id(ids.qp);
    ExpectNotFound(session.Call(&QueueStub::QueryQp, query), "qp_id");
    query.set_qp_id(own.qp);
    const auto own_address = session.Call(&QueueStub::QueryQp, query);
    ExpectOk(own_address);
    v1::ConnectQpRequest connect;
    connect.set_qp_id(ids.qp);
    connect.set_peer_address(own_address.response.address());
    ExpectNotFound(session.Call(&QueueStub::ConnectQp, connect), "qp_id");
    v1::DisconnectQpRequest disconnect;
    disconnect.set_qp_id(ids.qp);
    ExpectNotFound(session.Call(&QueueStub::DisconnectQp, disconnect), "qp_id");
    v1::FlushRequest flush;
    flush.set_qp_id(ids.qp);
    ExpectNotFound(session.Call(&QueueStub::Flush, flush), "qp_id");
    v1::PostRequest post;
    post.set_qp_id(ids.qp);
    *post.add_requests() = ReceiveRequest({});
    ExpectNotFound(session.Call(&QueueStub::Post, post), "qp_id");
    ExpectNotFound(CloseQp(session, ids.qp), "qp_id");
    ExpectNotFound(CloseQp(session, ids.qp, true), "qp_id");
  }

  // Calls on windows, regions and mappings.
  static void TryMemory(TestSession& session, const Ids& own, const Ids& ids) {
    v1::CreateMwRequest create_mw;
    create_mw.set_pd_id(ids.pd);
    ExpectNotFound(session.Call(&QueueStub::CreateMw, create_mw), "pd_id");
    ExpectNotFound(WindowToken(session, ids.mw), "mw_id");
    ExpectNotFound(CloseMw(session, ids.mw), "mw_id");
    v1::GetPrivilegedMemoryRegionTokenRequest privileged;
    privileged.set_pd_id(ids.pd);
    ExpectNotFound(session.Call(&QueueStub::GetPrivilegedMemoryRegionToken, privileged), "pd_id");
    v1::BuildLamRequest build;
    build.set_adapter_id(own.adapter);
    *build.add_mdl_chain() = MdlEntry(ids.memory, 0, kPage, kBase);
    build.set_length(kPage);
    ExpectNotFound(session.Call(&MemoryStub::BuildLam, build), "mdl_chain[0].memory_id");
    build.mutable_mdl_chain(0)->set_memory_id(own.memory);
    build.set_adapter_id(ids.adapter);
    ExpectNotFound(session.Call(&MemoryStub::BuildLam, build), "adapter_id");
    v1::ReleaseLamRequest release;
    release.set_lam_id(ids.lam);
    ExpectNotFound(session.Call(&MemoryStub::ReleaseLam, release), "lam_id");
    v1::ProvisionMemoryRequest provision;
    provision.set_memory_id(ids.memory);
    provision.set_pd_id(own.pd);
    *provision.add_items() = ProvisionRange(0, kPage);
    ExpectNotFound(session.Call(&MemoryStub::ProvisionMemory, provision), "memory_id");
    provision.set_memory_id(own.memory);
    provision.set_pd_id(ids.pd);
    ExpectNotFound(session.Call(&MemoryStub::ProvisionMemory, provision), "pd_id");
    ExpectNotFound(InitializeFast(session, ids.fast_mr, 1, true), "mr_id");
    ExpectNotFound(session.LocalToken(ids.fast_mr), "mr_id");
    ExpectNotFound(session.RemoteToken(ids.fast_mr), "mr_id");
    ExpectNotFound(session.CloseMr(ids.fast_mr), "mr_id");
  }

  // Requests that name the ids, on a connected queue pair.
  static void TryRequests(TestQueue& queue, TestMemory& memory, const Ids& own, const Ids& ids) {
    constexpr ErrorReason kNotFound = ErrorReason::OBJECT_NOT_FOUND;
    const std::vector<uint64_t> pages = memory.Pages(0, 1);
    for (const uint64_t mr : {ids.fast_mr, ids.normal_mr}) {
      queue.ExpectPostRefused(FastRegisterRequest(mr, pages, kPage, kBase, kRemoteRights), kNotFound,
                              "fast_register.mr_id");
      queue.ExpectPostRefused(InvalidateMrRequest(mr), kNotFound, "invalidate.mr_id");
      queue.ExpectPostRefused(BindRequest(mr, own.mw, kBase, 8, 0), kNotFound, "bind.mr_id");
    }
    queue.ExpectPostRefused(InvalidateMwRequest(ids.mw), kNotFound, "invalidate.mw_id");
    queue.ExpectPostRefused(BindRequest(own.normal_mr, ids.mw, kBase, 8, 0), kNotFound, "bind.mw_id");
  }
};

// A session with one object of each kind, all in use.
struct Household {
  explicit Household(DaemonProcess& daemon)
      : session(daemon), queue(session), memory(session, 2 * kPage), normal_mr(session.CreateMr()) {
    session.RegisterWhole(normal_mr, memory.id(), kPage, v1::MR_FLAG_ALLOW_REMOTE_WRITE);
    ids = {.adapter = session.adapter_id(),
           .pd = session.pd_id(),
           .cq = queue.initiator_cq_id(),
           .qp = queue.qp_id(),
           .fast_mr = FastRegion(session, 1),
           .normal_mr = normal_mr,
           .mw = CreateMw(session),
           .memory = memory.id(),
           .lam = memory.lam().lam_id()};
  }

  TestSession session;
  TestQueue queue;
  TestMemory memory;
  uint64_t normal_mr;
  Ids ids;
};

TEST_F(ForeignIds, AnotherSessionsObjectsDoNotExist) {
  Household owner(daemon());
  Household stranger(daemon());
  ConnectPair(owner.queue, stranger.queue);
  TryQueues(stranger.session, owner.ids);
  TryQueuePairs(stranger.session, stranger.ids, owner.ids);
  TryMemory(stranger.session, stranger.ids, owner.ids);
  TryRequests(stranger.queue, stranger.memory, stranger.ids, owner.ids);
  // All objects still work for their owner.
  EXPECT_EQ(owner.queue.Query().state(), v1::QP_STATE_READY_TO_SEND);
  owner.queue.MustRun(FastRegisterRequest(owner.ids.fast_mr, owner.memory.Pages(1, 1), kPage, kBase, kRemoteRights));
  owner.queue.MustRun(BindRequest(owner.ids.normal_mr, owner.ids.mw, kBase, 8, v1::OP_FLAG_ALLOW_REMOTE_READ));
  ExpectOk(Arm(owner.session, owner.ids.cq, v1::CQ_NOTIFY_TYPE_ANY));
}

TEST_F(ForeignIds, IdsThatWereNeverGivenOutDoNotExist) {
  Household owner(daemon());
  TestSession peer(daemon());
  TestQueue peer_queue(peer);
  ConnectPair(owner.queue, peer_queue);
  for (const uint64_t id : {uint64_t{0}, uint64_t{1}, std::numeric_limits<uint64_t>::max()}) {
    const Ids made_up = {
        .adapter = id, .pd = id, .cq = id, .qp = id, .fast_mr = id, .normal_mr = id, .mw = id, .memory = id, .lam = id};
    TryQueues(owner.session, made_up);
    TryQueuePairs(owner.session, owner.ids, made_up);
    TryMemory(owner.session, owner.ids, made_up);
    TryRequests(owner.queue, owner.memory, owner.ids, made_up);
  }
}

// An id of one kind is not valid for another kind, not even for its owner.
TEST_F(ForeignIds, IdsOfAnotherKindDoNotExist) {
  Household owner(daemon());
  TestSession peer(daemon());
  TestQueue peer_queue(peer);
  ConnectPair(owner.queue, peer_queue);
  const Ids& own = owner.ids;
  const Ids mixed = {.adapter = own.pd,
                     .pd = own.cq,
                     .cq = own.qp,
                     .qp = own.cq,
                     .fast_mr = own.mw,
                     .normal_mr = own.lam,
                     .mw = own.fast_mr,
                     .memory = own.lam,
                     .lam = own.memory};
  TryQueues(owner.session, mixed);
  TryQueuePairs(owner.session, own, mixed);
  TryMemory(owner.session, own, mixed);
  TryRequests(owner.queue, owner.memory, own, mixed);
}

TEST_F(ForeignIds, IdsOfClosedObjectsDoNotExist) {
  Household owner(daemon());
  TestQueue queue(owner.session);
  TestSession peer(daemon());
  TestQueue peer_queue(peer);
  ConnectPair(queue, peer_queue);
  const Ids closed = {.adapter = 0,
                      .pd = 0,
                      .cq = CreateCq(owner.session, 1),
                      .qp = owner.ids.qp,
                      .fast_mr = owner.ids.fast_mr,
                      .normal_mr = owner.ids.normal_mr,
                      .mw = owner.ids.mw,
                      .memory = 0,
                      .lam = 0};
  ExpectOk(CloseCq(owner.session, closed.cq));
  ExpectOk(CloseQp(owner.session, closed.qp));
  ExpectOk(CloseMw(owner.session, closed.mw));
  ExpectOk(owner.session.CloseMr(closed.fast_mr));
  ExpectOk(owner.session.CloseMr(closed.normal_mr));
  Ids own = owner.ids;
  own.qp = queue.qp_id();
  own.mw = CreateMw(owner.session);
  own.normal_mr = owner.session.CreateMr();
  owner.session.RegisterWhole(own.normal_mr, owner.memory.id(), kPage);
  TryQueues(owner.session, closed);
  TryQueuePairs(owner.session, own, closed);
  TryMemory(owner.session, own, closed);
  TryRequests(queue, owner.memory, own, closed);
}

}  // namespace
}  // namespace rnicd::test
