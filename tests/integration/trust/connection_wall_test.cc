// The wall around connections: where a tenant may listen, whom it reaches, and whose requests reach it.
#include <memory>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/operators/audit_lines.h"
#include "tests/integration/test_grant.h"
#include "tests/support/admin_client.h"
#include "tests/support/connection_client.h"
#include "tests/support/metrics_page.h"
#include "tests/support/process/wait.h"
#include "tests/support/shared_daemon.h"

namespace rnicd::test {
namespace {

// No address of these tests lies in it.
constexpr char kElsewhere[] = "192.0.2.0/24";

// A tenant of its own, with a session and a queue pair.
struct Walled {
  Walled(DaemonProcess& daemon, const std::string& name, const Permissions& permissions)
      : grant(daemon, GrantFor(name, permissions)), party(daemon, name, grant.secret()), queue(party) {}

  CallResult<v1::ConnectResponse> AskFor(const v1::NetworkAddress& peer) {
    return Connect(party, RequestTo(CreateConnector(party), queue, peer));
  }
  CallResult<v1::ConnectResponse> AskFor(const std::string& name) {
    v1::ConnectRequest request = RequestTo(CreateConnector(party), queue, {});
    request.clear_peer();
    request.set_peer_name(name);
    return Connect(party, request);
  }

  TestGrant grant;
  TestParty party;
  TestQueue queue;
};

// The active side's request, up to an established connection.
void ExpectConnects(Walled& active, Walled& passive, Where where = Where::current()) {
  const uint64_t accepted = passive.party.NextRequest(where).connector_id();
  ExpectPends(Accept(passive.party, AnswerTo(accepted, passive.queue)), where);
  const v1::RequestCompleted connected = active.party.NextCompletion(where);
  ExpectDone(connected, v1::REQUEST_KIND_CONNECT, kConnectContext, connected.object_id(), where);
  ExpectOk(CompleteConnect(active.party, connected.object_id()), where);
  ExpectDone(passive.party.NextCompletion(where), v1::REQUEST_KIND_ACCEPT, kAcceptContext, accepted, where);
}

class ConnectionWall : public DaemonTest {
 protected:
  ConnectionWall() : DaemonTest({kMetricsOnFreePort}) {}

  // Those of the wall, as the metrics page counts them.
  double RefusalsOfTheOwner() const {
    const MetricsPage page(HttpGet(AdminStatus(daemon()).metrics_address(), "/metrics").body);
    return page.Sum("rnicd_refusals_total{tenant=\"grant/owner\",reason=\"address_not_permitted\"}");
  }
};

TEST_F(ConnectionWall, TenantWithoutPermissionCannotListen) {
  Walled tenant(daemon(), "mute", {});
  ExpectRefused(Listen(tenant.party, CreateListener(tenant.party)), ErrorReason::ADDRESS_NOT_PERMITTED, "local");
  EXPECT_THAT(AdminListeners(daemon()), testing::IsEmpty());
}

TEST_F(ConnectionWall, ListenerOfAnotherTenantIsNotReachedByItsAddress) {
  Walled owner(daemon(), "owner", {.listen = true, .accept = kEveryAddress});
  Walled stranger(daemon(), "stranger", {.listen = true, .connect = kElsewhere});
  const TestListener listener(owner.party);
  ExpectRefused(stranger.AskFor(listener.local), ErrorReason::ADDRESS_NOT_PERMITTED, "peer");
  EXPECT_THAT(owner.party.EventsUntilEnd(), testing::IsEmpty());
}

TEST_F(ConnectionWall, ListenerOfAnotherTenantIsNotReachedByItsName) {
  Walled owner(daemon(), "owner", {.listen = true, .accept = kEveryAddress});
  Walled stranger(daemon(), "stranger", {.connect = kElsewhere});
  const TestListener listener(owner.party, {}, "shelf");
  ExpectRefused(stranger.AskFor(listener.full_name), ErrorReason::ADDRESS_NOT_PERMITTED, "peer_name");
  // Without a "/" it is a name of its own.
  ExpectRefused(stranger.AskFor("shelf"), ErrorReason::NAME_NOT_FOUND, "peer_name");
  EXPECT_THAT(owner.party.EventsUntilEnd(), testing::IsEmpty());
}

TEST_F(ConnectionWall, TenantsThatPermitEachOtherConnect) {
  Walled owner(daemon(), "owner", {.listen = true, .accept = kEveryAddress});
  Walled guest(daemon(), "guest", {.connect = kEveryAddress});
  const TestListener listener(owner.party, {}, "shelf");
  ExpectPends(guest.AskFor(listener.local));
  ExpectConnects(guest, owner);
  Walled other(daemon(), "other", {.connect = kEveryAddress});
  TestQueue second(owner.party);
  ExpectPends(other.AskFor(listener.full_name));
  EXPECT_NE(owner.party.NextRequest().connector_id(), 0u);
}

TEST_F(ConnectionWall, TenantReachesItselfWithoutPermission) {
  Walled tenant(daemon(), "lonely", {.listen = true});
  TestParty second(daemon(), "second", tenant.grant.secret());
  const TestListener listener(second);
  ExpectPends(tenant.AskFor(listener.local));
  EXPECT_NE(second.NextRequest().connector_id(), 0u);
}

TEST_F(ConnectionWall, QueuePairOfAnotherTenantIsNotReached) {
  Walled owner(daemon(), "owner", {});
  Walled stranger(daemon(), "stranger", {.connect = kElsewhere});
  ExpectRefused(Connect(stranger.queue, owner.queue.Query().address()), ErrorReason::ADDRESS_NOT_PERMITTED,
                "peer_address");
  EXPECT_EQ(stranger.queue.Query().state(), v1::QP_STATE_INIT);
}

TEST_F(ConnectionWall, QueuePairsOfTenantsThatPermitEachOtherConnect) {
  Walled one(daemon(), "one", {.connect = kEveryAddress});
  Walled other(daemon(), "other", {.connect = kEveryAddress});
  ConnectPair(one.queue, other.queue);
  one.queue.MustRun(WriteRequest({}, 0, 0));
}

TEST_F(ConnectionWall, PeerThatAcceptDoesNotNameNeverReachesTheWorkload) {
  Walled owner(daemon(), "owner", {.listen = true, .accept = kElsewhere});
  Walled stranger(daemon(), "stranger", {.connect = kEveryAddress});
  const TestListener listener(owner.party);
  const double refusals = RefusalsOfTheOwner();
  ExpectPends(stranger.AskFor(listener.local));
  ExpectFailed(stranger.party.NextCompletion(), v1::REQUEST_KIND_CONNECT, kConnectContext,
               ErrorReason::CONNECTION_REFUSED);
  const std::vector<v1::ListenerInfo> listeners = AdminListeners(daemon());
  ASSERT_EQ(listeners.size(), 1u);
  EXPECT_EQ(listeners[0].tenant(), owner.grant.tenant());
  EXPECT_EQ(listeners[0].reported(), 0u);
  EXPECT_EQ(listeners[0].refused(), 1u);
  EXPECT_THAT(AdminConnections(daemon()), testing::IsEmpty());
  EXPECT_EQ(RefusalsOfTheOwner(), refusals + 1);
  EXPECT_THAT(owner.party.EventsUntilEnd(), testing::IsEmpty());
}

// Ports that are open, taken or free look the same from behind the wall.
TEST_F(ConnectionWall, PortScanLearnsNothing) {
  constexpr uint32_t kPorts = 1000;
  constexpr uint32_t kFirstScanned = 50'000;
  Walled owner(daemon(), "owner", {.listen = true, .accept = kEveryAddress});
  Walled stranger(daemon(), "stranger", {.listen = true});
  v1::NetworkAddress target = AddressOf(FreeAddress(owner.party).address(), kFirstScanned + kPorts / 2);
  const TestListener open(owner.party, target);
  const TestListener paused(owner.party, AddressOf(target.address(), target.port() + 1));
  ExpectOk(Pause(owner.party, paused.id));
  v1::ConnectRequest request = RequestTo(CreateConnector(stranger.party), stranger.queue, target);
  std::set<std::string> answers;
  for (uint32_t port = kFirstScanned; port < kFirstScanned + kPorts; ++port) {
    request.mutable_peer()->set_port(port);
    const auto answer = Connect(stranger.party, request);
    ASSERT_TRUE(ExpectRefused(answer, ErrorReason::ADDRESS_NOT_PERMITTED, "peer"));
    answers.insert(answer.message + answer.detail.SerializeAsString());
  }
  EXPECT_EQ(answers.size(), 1u);
  EXPECT_THAT(owner.party.EventsUntilEnd(), testing::IsEmpty());
}

// --- the audit log ---

TEST(ConnectionAudit, Property16DecisionsHaveBothAddresses) {
  const auto directory = std::make_shared<TempDir>();
  const std::string path = directory->path() + "/audit.log";
  auto started = DaemonProcess::Start({.flags = {"--audit_log=" + path}, .directory = directory});
  ASSERT_TRUE(started.ok()) << started.status();
  DaemonProcess& daemon = **started;
  std::string local;
  {
    Walled owner(daemon, "owner", {.listen = true, .accept = kElsewhere});
    Walled stranger(daemon, "stranger", {.connect = kEveryAddress});
    const TestListener listener(owner.party);
    local = TextOf(listener.local);
    ExpectPends(stranger.AskFor(listener.local));
    ExpectFailed(stranger.party.NextCompletion(), v1::REQUEST_KIND_CONNECT, kConnectContext,
                 ErrorReason::CONNECTION_REFUSED);
  }
  EXPECT_TRUE(daemon.Stop().ok());
  const AuditLines lines(path);
  const AuditLines::Json request = lines.Only({{"what", "connection.request"}});
  EXPECT_EQ(request["result"], "refused");
  EXPECT_EQ(request["reason"], "ADDRESS_NOT_PERMITTED");
  EXPECT_EQ(request["tenant"], "grant/owner");
  const AuditLines::Json asked = lines.Only({{"what", "connection.connect"}});
  EXPECT_EQ(asked["tenant"], "grant/stranger");
  const std::string of_request = request["object"];
  const std::string of_asked = asked["object"];
  EXPECT_THAT(of_request, testing::HasSubstr(" local=" + local + " peer="));
  const std::string source = of_request.substr(of_request.find(" peer=") + 6);
  EXPECT_THAT(of_asked, testing::HasSubstr(" local=" + source + " peer=" + local));
}

}  // namespace
}  // namespace rnicd::test
