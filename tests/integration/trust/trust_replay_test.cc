// Property 13: every call that changes something, made twice. A client that lost the response may retry: the second
// call is refused with a specific reason, or changes nothing, or makes another object that is owned by and charged to
// the session.

#include <set>
#include <string>

#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include "tests/integration/trust/replays.h"
#include "tests/integration/trust_fixture.h"
#include "tests/support/connection_client.h"

namespace rnicd::test {
namespace {

// Calls that never change anything.
const std::set<std::string>& CallsThatOnlyLook() {
  static const std::set<std::string> calls = {
      "SessionService.GetSession",
      "SessionService.WatchEvents",
      "AdapterService.ListAdapters",
      "AdapterService.QueryAdapterInfo",
      "MemoryService.GetLocalToken",
      "MemoryService.GetRemoteToken",
      "QueueService.QueryQp",
      "QueueService.GetRemoteTokenFromMw",
      "QueueService.GetPrivilegedMemoryRegionToken",
      "ConnectionService.GetListenerLocalAddress",
      "ConnectionService.GetConnectionData",
      "ConnectionService.GetConnectorAddresses",
      "AdminService.GetStatus",
      "AdminService.ListSessions",
      "AdminService.ListRegions",
      "AdminService.ListTenants",
      "AdminService.InspectSession",
      "AdminService.DumpState",
      "AdminService.ListGrants",
      "AdminService.ListListeners",
      "AdminService.ListConnections",
  };
  return calls;
}

// Every RPC method, as "MemoryService.CreateMr".
std::set<std::string> AllCalls() {
  std::set<std::string> calls;
  for (const char* const name :
       {"SessionService", "AdapterService", "MemoryService", "QueueService", "ConnectionService", "AdminService"}) {
    const auto* const service =
        google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(std::string("rnicd.v1.") + name);
    EXPECT_NE(service, nullptr) << name;
    for (int index = 0; service != nullptr && index < service->method_count(); ++index) {
      calls.insert(std::string(name) + "." + service->method(index)->name());
    }
  }
  return calls;
}

template <typename Request>
Request WithMr(uint64_t mr_id) {
  Request request;
  request.set_mr_id(mr_id);
  return request;
}

template <typename Request>
Request WithConnector(uint64_t connector_id) {
  Request request;
  request.set_connector_id(connector_id);
  return request;
}

template <typename Request>
Request WithListener(uint64_t listener_id) {
  Request request;
  request.set_listener_id(listener_id);
  return request;
}

void ReplayMemory(Replays& replays, TestSession& session) {
  v1::AllocateMemoryRequest allocate;
  allocate.set_size(kPage);
  const v1::AllocateMemoryResponse allocated =
      replays.Another("MemoryService.AllocateMemory", session, &MemoryStub::AllocateMemory, allocate,
                      &v1::AllocateMemoryResponse::memory_id);
  const uint64_t memory_id = allocated.memory_id();
  EXPECT_TRUE(session.Fetch(allocated.fd_ticket()).valid());
  v1::ImportMemoryRequest import;
  import.set_size(kPage);
  replays.Another("MemoryService.ImportMemory", session, &MemoryStub::ImportMemory, import,
                  &v1::ImportMemoryResponse::memory_id);
  EXPECT_EQ(session.Use("memory_objects").used(), 4u);
  v1::SealMemoryRequest seal;
  seal.set_memory_id(memory_id);
  replays.Refused("MemoryService.SealMemory", session, &MemoryStub::SealMemory, seal,
                  ErrorReason::MEMORY_ALREADY_SEALED);
  v1::ReleaseMemoryRequest release;
  release.set_memory_id(memory_id);
  replays.Refused("MemoryService.ReleaseMemory", session, &MemoryStub::ReleaseMemory, release,
                  ErrorReason::OBJECT_NOT_FOUND);
  // The daemon may still have the descriptor that it sent.
  EXPECT_TRUE(Eventually([&] { return session.Use("memory_objects").used() == 3u; }));
}

// Closes a separate domain at the end; the session's domain stays.
void ReplayRegions(Replays& replays, TestSession& session) {
  v1::CreatePdRequest create_pd;
  create_pd.set_adapter_id(session.adapter_id());
  const uint64_t pd_id =
      replays.Another("MemoryService.CreatePd", session, &MemoryStub::CreatePd, create_pd, &v1::CreatePdResponse::pd_id)
          .pd_id();
  v1::CreateMrRequest create;
  create.set_pd_id(session.pd_id());
  const uint64_t mr_id =
      replays.Another("MemoryService.CreateMr", session, &MemoryStub::CreateMr, create, &v1::CreateMrResponse::mr_id)
          .mr_id();
  EXPECT_EQ(session.Use("regions").used(), 2u);
  const uint64_t memory_id = session.SealedMemory(kPage);
  const auto chain = {MdlEntry(memory_id, 0, kPage, kBase)};
  replays.Refused("MemoryService.RegisterMr", session, &MemoryStub::RegisterMr, RegisterRequest(mr_id, chain, kPage),
                  ErrorReason::REGION_ALREADY_REGISTERED);
  EXPECT_EQ(session.Use("registered_bytes").used(), kPage);
  replays.Refused("MemoryService.DeregisterMr", session, &MemoryStub::DeregisterMr,
                  WithMr<v1::DeregisterMrRequest>(mr_id), ErrorReason::REGION_NOT_REGISTERED);
  EXPECT_EQ(session.Use("registered_bytes").used(), 0u);
  auto initialize = WithMr<v1::InitializeFastRegisterMrRequest>(session.CreateMr(true));
  initialize.set_adapter_page_count(4);
  replays.Refused("MemoryService.InitializeFastRegisterMr", session, &MemoryStub::InitializeFastRegisterMr, initialize,
                  ErrorReason::REGION_ALREADY_INITIALIZED);
  EXPECT_EQ(session.Use("fast_register_pages").used(), 4u);
  replays.Refused("MemoryService.CloseMr", session, &MemoryStub::CloseMr, WithMr<v1::CloseMrRequest>(mr_id),
                  ErrorReason::OBJECT_NOT_FOUND);
  v1::BuildLamRequest build;
  build.set_adapter_id(session.adapter_id());
  *build.add_mdl_chain() = MdlEntry(memory_id, 0, kPage, kBase);
  build.set_length(kPage);
  v1::ReleaseLamRequest release;
  release.set_lam_id(
      replays.Another("MemoryService.BuildLam", session, &MemoryStub::BuildLam, build, &v1::BuildLamResponse::lam_id)
          .lam_id());
  replays.Refused("MemoryService.ReleaseLam", session, &MemoryStub::ReleaseLam, release, ErrorReason::OBJECT_NOT_FOUND);
  EXPECT_EQ(session.Use("logical_mappings").used(), 1u);
  v1::ClosePdRequest close;
  close.set_pd_id(pd_id);
  replays.Refused("MemoryService.ClosePd", session, &MemoryStub::ClosePd, close, ErrorReason::OBJECT_NOT_FOUND);
}

void ReplayBatches(Replays& replays, TestSession& session) {
  constexpr uint64_t kItems = 3;
  v1::BatchCreateMrRequest create;
  for (uint64_t item = 0; item < kItems; ++item) {
    create.add_items()->set_pd_id(session.pd_id());
  }
  const uint64_t before = session.Use("regions").used();
  const auto created =
      replays.Repeated("MemoryService.BatchCreateMr", session, &MemoryStub::BatchCreateMr, create).first;
  EXPECT_EQ(session.Use("regions").used(), before + 2 * kItems);
  const uint64_t memory_id = session.SealedMemory(kPage);
  v1::BatchRegisterMrRequest register_all;
  v1::BatchDeregisterMrRequest deregister;
  v1::BatchCloseMrRequest close;
  for (const v1::CreateMrOutcome& outcome : created.outcomes()) {
    const uint64_t mr_id = outcome.response().mr_id();
    *register_all.add_items() = RegisterRequest(mr_id, {MdlEntry(memory_id, 0, kPage, kBase)}, kPage);
    deregister.add_items()->set_mr_id(mr_id);
    close.add_items()->set_mr_id(mr_id);
  }
  replays.ItemsRefused("MemoryService.BatchRegisterMr", session, &MemoryStub::BatchRegisterMr, register_all,
                       ErrorReason::REGION_ALREADY_REGISTERED);
  EXPECT_EQ(session.Use("registered_bytes").used(), (kItems + 1) * kPage) << "a mapping has a page registered, too";
  replays.ItemsRefused("MemoryService.BatchDeregisterMr", session, &MemoryStub::BatchDeregisterMr, deregister,
                       ErrorReason::REGION_NOT_REGISTERED);
  replays.ItemsRefused("MemoryService.BatchCloseMr", session, &MemoryStub::BatchCloseMr, close,
                       ErrorReason::OBJECT_NOT_FOUND);
  v1::BatchAllocateMemoryRequest allocate;
  allocate.add_items()->set_size(kPage);
  const uint64_t objects = session.Use("memory_objects").used();
  const auto allocated =
      replays.Repeated("MemoryService.BatchAllocateMemory", session, &MemoryStub::BatchAllocateMemory, allocate).first;
  EXPECT_EQ(session.Use("memory_objects").used(), objects + 2);
  const v1::AllocateMemoryResponse& attached = allocated.outcomes(0).response();
  EXPECT_TRUE(session.Fetch(attached.fd_ticket()).valid());
  v1::BatchSealMemoryRequest seal;
  seal.add_items()->set_memory_id(attached.memory_id());
  replays.ItemsRefused("MemoryService.BatchSealMemory", session, &MemoryStub::BatchSealMemory, seal,
                       ErrorReason::MEMORY_ALREADY_SEALED);
  const uint64_t regions = session.Use("regions").used();
  v1::ProvisionMemoryRequest provision;
  provision.set_memory_id(attached.memory_id());
  provision.set_pd_id(session.pd_id());
  *provision.add_items() = ProvisionRange(0, kPage);
  replays.Repeated("MemoryService.ProvisionMemory", session, &MemoryStub::ProvisionMemory, provision);
  EXPECT_EQ(session.Use("regions").used(), regions + 2);
  v1::BatchInitializeFastRegisterMrRequest initialize;
  for (uint64_t item = 0; item < kItems; ++item) {
    v1::InitializeFastRegisterMrRequest& one = *initialize.add_items();
    one.set_mr_id(session.CreateMr(true));
    one.set_adapter_page_count(4);
  }
  replays.ItemsRefused("MemoryService.BatchInitializeFastRegisterMr", session,
                       &MemoryStub::BatchInitializeFastRegisterMr, initialize, ErrorReason::REGION_ALREADY_INITIALIZED);
}

void ReplayCompletionQueues(Replays& replays, TestSession& session) {
  v1::CreateCqRequest create;
  create.set_adapter_id(session.adapter_id());
  create.set_cq_depth(8);
  const uint64_t cq_id =
      replays.Another("QueueService.CreateCq", session, &QueueStub::CreateCq, create, &v1::CreateCqResponse::cq_id)
          .cq_id();
  v1::ResizeCqRequest resize;
  resize.set_cq_id(cq_id);
  resize.set_cq_depth(16);
  replays.Repeated("QueueService.ResizeCq", session, &QueueStub::ResizeCq, resize);
  EXPECT_EQ(session.Use("cq_entries").used(), 24u);
  v1::ArmCqRequest arm;
  arm.set_cq_id(cq_id);
  arm.set_type(v1::CQ_NOTIFY_TYPE_ANY);
  replays.Repeated("QueueService.ArmCq", session, &QueueStub::ArmCq, arm);
  v1::CloseCqRequest close;
  close.set_cq_id(cq_id);
  replays.Refused("QueueService.CloseCq", session, &QueueStub::CloseCq, close, ErrorReason::OBJECT_NOT_FOUND);
}

// Uses a queue pair that is its own peer.
void ReplayQueuePairs(Replays& replays, TestSession& session) {
  TestQueue queue(session);
  v1::CreateQpRequest create;
  create.set_pd_id(session.pd_id());
  create.set_receive_cq_id(queue.receive_cq_id());
  create.set_initiator_cq_id(queue.initiator_cq_id());
  const uint64_t other_id =
      replays.Another("QueueService.CreateQp", session, &QueueStub::CreateQp, create, &v1::CreateQpResponse::qp_id)
          .qp_id();
  v1::ConnectQpRequest connect;
  connect.set_qp_id(queue.qp_id());
  connect.set_peer_address(queue.Query().address());
  replays.Refused("QueueService.ConnectQp", session, &QueueStub::ConnectQp, connect, ErrorReason::QP_NOT_CONNECTABLE);
  // A request posted twice is executed twice, and each execution is reported once.
  v1::PostRequest post;
  post.set_qp_id(queue.qp_id());
  *post.add_requests() = WriteRequest({}, 0, 0, 0, 7);
  replays.Repeated("QueueService.Post", session, &QueueStub::Post, post);
  EXPECT_EQ(queue.NextInitiator().result().request_context(), 7u);
  EXPECT_EQ(queue.NextInitiator().result().request_context(), 7u);
  v1::GetCqResultsRequest results;
  results.set_cq_id(queue.initiator_cq_id());
  results.set_max_results(10);
  const auto [first, second] =
      replays.Repeated("QueueService.GetCqResults", session, &QueueStub::GetCqResults, results);
  EXPECT_EQ(first.results_size() + second.results_size(), 0);
  v1::GetCqResultsExRequest results_ex;
  results_ex.set_cq_id(queue.initiator_cq_id());
  results_ex.set_max_results(10);
  queue.MustPost({WriteRequest({}, 0, 0, 0, 8)});
  size_t reported = 0;
  EXPECT_TRUE(Eventually([&] {
    const auto [one, again] =
        replays.Repeated("QueueService.GetCqResultsEx", session, &QueueStub::GetCqResultsEx, results_ex);
    reported += static_cast<size_t>(one.results_size() + again.results_size());
    return reported > 0;
  }));
  EXPECT_EQ(reported, 1u) << "a completion is taken once; who lost the answer has lost it";
  v1::DisconnectQpRequest disconnect;
  disconnect.set_qp_id(queue.qp_id());
  replays.Refused("QueueService.DisconnectQp", session, &QueueStub::DisconnectQp, disconnect,
                  ErrorReason::QP_NOT_CONNECTED);
  v1::FlushRequest flush;
  flush.set_qp_id(other_id);
  replays.Repeated("QueueService.Flush", session, &QueueStub::Flush, flush);
  v1::CloseQpRequest close;
  close.set_qp_id(other_id);
  replays.Refused("QueueService.CloseQp", session, &QueueStub::CloseQp, close, ErrorReason::OBJECT_NOT_FOUND);
}

void ReplayWindows(Replays& replays, TestSession& session) {
  v1::CreateMwRequest create;
  create.set_pd_id(session.pd_id());
  v1::CloseMwRequest close;
  close.set_mw_id(
      replays.Another("QueueService.CreateMw", session, &QueueStub::CreateMw, create, &v1::CreateMwResponse::mw_id)
          .mw_id());
  replays.Refused("QueueService.CloseMw", session, &QueueStub::CloseMw, close, ErrorReason::OBJECT_NOT_FOUND);
  EXPECT_EQ(session.Use("windows").used(), 1u);
}

void ReplayListeners(Replays& replays, TestSession& session) {
  v1::CreateListenerRequest create;
  create.set_adapter_id(session.adapter_id());
  const uint64_t listener_id =
      replays
          .Another("ConnectionService.CreateListener", session, &ConnectionStub::CreateListener, create,
                   &v1::CreateListenerResponse::listener_id)
          .listener_id();
  EXPECT_EQ(session.Use("listeners").used(), 2u);
  replays.Refused("ConnectionService.Listen", session, &ConnectionStub::Listen,
                  WithListener<v1::ListenRequest>(listener_id), ErrorReason::LISTENER_STATE);
  auto pause = WithListener<v1::ControlConnectEventsRequest>(listener_id);
  pause.set_pause(true);
  replays.Repeated("ConnectionService.ControlConnectEvents", session, &ConnectionStub::ControlConnectEvents, pause);
  replays.Refused("ConnectionService.CloseListener", session, &ConnectionStub::CloseListener,
                  WithListener<v1::CloseListenerRequest>(listener_id), ErrorReason::OBJECT_NOT_FOUND);
  EXPECT_EQ(session.Use("listeners").used(), 1u);
  v1::CreateSharedEndpointRequest share;
  share.set_adapter_id(session.adapter_id());
  v1::CloseSharedEndpointRequest close;
  close.set_shared_endpoint_id(replays
                                   .Another("ConnectionService.CreateSharedEndpoint", session,
                                            &ConnectionStub::CreateSharedEndpoint, share,
                                            &v1::CreateSharedEndpointResponse::shared_endpoint_id)
                                   .shared_endpoint_id());
  replays.Refused("ConnectionService.CloseSharedEndpoint", session, &ConnectionStub::CloseSharedEndpoint, close,
                  ErrorReason::OBJECT_NOT_FOUND);
}

// Makes and ends a connection, then has a second one rejected.
void ReplayConnections(Replays& replays, DaemonProcess& daemon) {
  TestConnection connection(daemon);
  TestParty& active = connection.active;
  TestParty& passive = connection.passive;
  replays.Refused("ConnectionService.Connect", active, &ConnectionStub::Connect, connection.request(),
                  ErrorReason::CONNECTION_ACTIVE);
  connection.passive_id = passive.NextRequest().connector_id();
  replays.Refused("ConnectionService.Accept", passive, &ConnectionStub::Accept, connection.answer(),
                  ErrorReason::CONNECTOR_STATE);
  active.NextCompletion();
  replays.Refused("ConnectionService.CompleteConnect", active, &ConnectionStub::CompleteConnect,
                  WithConnector<v1::CompleteConnectRequest>(connection.active_id), ErrorReason::CONNECTOR_STATE);
  passive.NextCompletion();
  auto disconnect = WithConnector<v1::DisconnectRequest>(connection.active_id);
  disconnect.set_allow_pending(true);
  replays.Refused("ConnectionService.Disconnect", active, &ConnectionStub::Disconnect, disconnect,
                  ErrorReason::CONNECTOR_STATE);
  ExpectOk(Disconnect(passive, connection.passive_id));
  active.NextCompletion();
  v1::CreateConnectorRequest create;
  create.set_adapter_id(active.adapter_id());
  const uint64_t connector_id =
      replays
          .Another("ConnectionService.CreateConnector", active, &ConnectionStub::CreateConnector, create,
                   &v1::CreateConnectorResponse::connector_id)
          .connector_id();
  TestQueue queue(active);
  ExpectPends(Connect(active, RequestTo(connector_id, queue, connection.listener.local)));
  const uint64_t request_id = passive.NextRequest().connector_id();
  replays.Refused("ConnectionService.Reject", passive, &ConnectionStub::Reject,
                  WithConnector<v1::RejectRequest>(request_id), ErrorReason::CONNECTOR_STATE);
  active.NextCompletion();
  replays.Refused("ConnectionService.CloseConnector", active, &ConnectionStub::CloseConnector,
                  WithConnector<v1::CloseConnectorRequest>(connector_id), ErrorReason::OBJECT_NOT_FOUND);
  ExpectOk(active.CloseSession());
  ExpectOk(passive.CloseSession());
}

void ReplaySessions(Replays& replays, DaemonProcess& daemon) {
  RawClient first(daemon.rpc_socket());
  v1::JoinSessionRequest join;
  join.set_session_id(replays
                          .Refused("SessionService.OpenSession", first, &SessionStub::OpenSession, {},
                                   ErrorReason::SESSION_ALREADY_OPEN)
                          .session_id());
  RawClient second(daemon.rpc_socket());
  replays.Refused("SessionService.JoinSession", second, &SessionStub::JoinSession, join,
                  ErrorReason::SESSION_ALREADY_OPEN);
  v1::OpenAdapterRequest open;
  v1::CloseAdapterRequest close;
  close.set_adapter_id(replays
                           .Another("AdapterService.OpenAdapter", first, &AdapterStub::OpenAdapter, open,
                                    &v1::OpenAdapterResponse::adapter_id)
                           .adapter_id());
  replays.Refused("AdapterService.CloseAdapter", first, &AdapterStub::CloseAdapter, close,
                  ErrorReason::OBJECT_NOT_FOUND);
  replays.Refused("SessionService.CloseSession", first, &SessionStub::CloseSession, {}, ErrorReason::SESSION_REQUIRED);
  EXPECT_EQ(AdminStatus(daemon).sessions(), 0u);
}

void ReplayOperator(Replays& replays, DaemonProcess& daemon) {
  RawClient admin(daemon.admin_socket());
  {
    TestSession victim(daemon);
    v1::EvictSessionRequest evict;
    evict.set_session_id(victim.session_id());
    replays.Refused("AdminService.EvictSession", admin, &AdminStub::EvictSession, evict,
                    ErrorReason::SESSION_NOT_FOUND);
  }
  v1::DrainRequest drain;
  const auto drained = replays.Repeated("AdminService.Drain", admin, &AdminStub::Drain, drain);
  EXPECT_TRUE(drained.first.draining() && drained.second.draining());
  drain.set_resume(true);
  const auto resumed = replays.Repeated("AdminService.Drain", admin, &AdminStub::Drain, drain);
  EXPECT_FALSE(resumed.first.draining() || resumed.second.draining());
  v1::SetLogLevelRequest level;
  level.set_level("info");
  replays.Repeated("AdminService.SetLogLevel", admin, &AdminStub::SetLogLevel, level);
  replays.Repeated("AdminService.ReloadPolicy", admin, &AdminStub::ReloadPolicy, {});
  v1::CreateGrantRequest grant;
  grant.set_name("replayed");
  v1::RevokeGrantRequest revoke;
  revoke.set_grant_id(
      replays.Refused("AdminService.CreateGrant", admin, &AdminStub::CreateGrant, grant, ErrorReason::GRANT_NAME_TAKEN)
          .grant_id());
  v1::BindGrantRequest bind;
  bind.set_grant_id(revoke.grant_id());
  bind.set_pod_uid("11111111-2222-3333-4444-555555555555");
  replays.Repeated("AdminService.BindGrant", admin, &AdminStub::BindGrant, bind);
  replays.Refused("AdminService.RevokeGrant", admin, &AdminStub::RevokeGrant, revoke, ErrorReason::GRANT_NOT_FOUND);
  v1::SetPodsRequest pods;
  pods.add_pods()->set_uid("11111111-2222-3333-4444-555555555555");
  replays.Repeated("AdminService.SetPods", admin, &AdminStub::SetPods, pods);
}

// The daemon has a policy file, so that a reload works.
TEST_F(Trust, Property13EveryCallMadeTwiceIsCleanAndLeavesNothing) {
  auto started = DaemonProcess::Start(
      {.flags = {PolicyFlag("tenant { name: \"all\" connections { listen { prefix: \"::/0\" first_port: 49152 "
                            "last_port: 65535 } } }\ndefault_tenant: \"all\"\n")}});
  ASSERT_TRUE(started.ok()) << started.status();
  DaemonProcess& daemon = **started;
  const IdleState idle = MeasureIdle(daemon);
  Replays replays;
  {
    TestSession session(daemon);
    ReplayMemory(replays, session);
    ReplayRegions(replays, session);
    ReplayBatches(replays, session);
    ReplayCompletionQueues(replays, session);
    ReplayQueuePairs(replays, session);
    ReplayWindows(replays, session);
    ReplayListeners(replays, session);
    ExpectOk(session.CloseSession());
  }
  ExpectNothingHeld(daemon, idle);
  ReplayConnections(replays, daemon);
  ReplaySessions(replays, daemon);
  ReplayOperator(replays, daemon);
  ExpectNothingHeld(daemon, idle);

  // A new RPC must be added here too.
  std::set<std::string> expected = AllCalls();
  for (const std::string& call : CallsThatOnlyLook()) {
    EXPECT_EQ(expected.erase(call), 1u) << call << " is no call of the wire";
  }
  EXPECT_EQ(replays.made(), expected);
  const absl::Status stopped = daemon.Stop();
  EXPECT_TRUE(stopped.ok()) << stopped;
}

}  // namespace
}  // namespace rnicd::test
