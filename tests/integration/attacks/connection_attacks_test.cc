// Attacks on listeners and on those who connect.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/test_grant.h"
#include "tests/integration/trust_fixture.h"
#include "tests/support/admin_client.h"
#include "tests/support/connection_client.h"
#include "tests/support/process/wait.h"
#include "tests/support/shared_daemon.h"

namespace rnicd::test {
namespace {

constexpr QueueOptions kSmallQueue = {.cq_depth = 2, .receive_queue_depth = 1, .initiator_queue_depth = 1};

class ConnectionAttack : public DaemonTest {};

TEST_F(ConnectionAttack, FloodOfRequestsStopsAtTheQuotaOfTheListenersTenant) {
  constexpr uint64_t kQuota = 16;
  constexpr uint64_t kRequests = 100;
  v1::CreateGrantRequest request = GrantFor("victim", {.listen = true, .accept = kEveryAddress});
  request.mutable_limits()->set_connectors(kQuota);
  request.mutable_session_limits()->set_connectors(kQuota);
  const TestGrant of_victim(daemon(), request);
  const TestGrant of_flooder(daemon(), GrantFor("flooder", {.connect = kEveryAddress}));
  TestParty victim(daemon(), "victim", of_victim.secret());
  TestParty flooder(daemon(), "flooder", of_flooder.secret());
  const TestListener listener(victim);
  for (uint64_t count = 0; count < kRequests; ++count) {
    const TestQueue queue(flooder, kSmallQueue);
    ExpectPends(Connect(flooder, RequestTo(CreateConnector(flooder), queue, listener.local)));
  }
  for (uint64_t count = kQuota; count < kRequests; ++count) {
    ExpectFailed(flooder.NextCompletion(), v1::REQUEST_KIND_CONNECT, kConnectContext, ErrorReason::CONNECTION_REFUSED);
  }
  EXPECT_EQ(UsedOf(TenantNamed(daemon(), of_victim.tenant()).resources(), "connectors"), kQuota);
  EXPECT_EQ(AdminListeners(daemon()).at(0).refused(), kRequests - kQuota);
  {
    TestConnection others(daemon());
    others.Make();
    others.End();
  }
  // Each request that is decided and closed makes room for another.
  ExpectOk(CloseConnector(victim, victim.NextRequest().connector_id()));
  ExpectFailed(flooder.NextCompletion(), v1::REQUEST_KIND_CONNECT, kConnectContext, ErrorReason::CONNECTION_REFUSED);
  const TestQueue queue(flooder, kSmallQueue);
  ExpectPends(Connect(flooder, RequestTo(CreateConnector(flooder), queue, listener.local)));
  EXPECT_TRUE(Eventually([&] { return AdminListeners(daemon()).at(0).reported() == kQuota + 1; }));
}

TEST_F(ConnectionAttack, PrivateDataAboveTheMaximumNeverReachThePeer) {
  constexpr size_t kMaxCallerData = 56;
  TestConnection connection(daemon());
  v1::ConnectRequest request = connection.request();
  request.set_private_data(std::string(kMaxCallerData + 1, 'x'));
  ExpectRefused(Connect(connection.active, request), ErrorReason::PRIVATE_DATA_TOO_LONG, "private_data");
  EXPECT_THAT(connection.passive.EventsUntilEnd(), testing::IsEmpty());
}

}  // namespace
}  // namespace rnicd::test
