// Output of the operator's commands.
#include "client/ctl/output/resource_use_test.h"
#include "client/ctl/output/views.h"
#include "gtest/gtest.h"

namespace rnicd::ctl {
namespace {

std::vector<v1::TenantInfo> SomeTenants() {
  v1::TenantInfo grant;
  grant.set_name("grant/ml");
  grant.set_grant_id(99);
  grant.set_sessions(1);
  *grant.add_resources() = Use("sessions", 1, 2);
  *grant.add_resources() = Use("pinned_bytes", 16u << 20, 64u << 20);
  *grant.add_resources() = Use("memory_bytes", 64u << 20, 0);
  *grant.add_resources() = Use("regions", 3, 3);
  grant.set_requests_per_second(1000);
  v1::TenantInfo guests;
  guests.set_name("guests/uid=0");
  guests.set_rule("guests");
  return {grant, guests};
}

TEST(AdminViews, Tenants) {
  EXPECT_EQ(TenantsText(SomeTenants()),
            "TENANT        SESSIONS           PINNED                MEMORY  REGIONS                 CALLS/S\n"
            "grant/ml         1 / 2  16 MiB / 64 MiB  [##........]  64 MiB    3 / 3  [##########]      1000\n"
            "guests/uid=0         0              0 B                   0 B        0                no limit\n");
  EXPECT_EQ(TenantsJson({SomeTenants().front()}).dump(),
            R"({"tenants":[{"tenant":"grant/ml","rule":"","grant_id":"99","sessions":1,"resources":{)"
            R"("sessions":{"used":1,"limit":2},"pinned_bytes":{"used":16777216,"limit":67108864},)"
            R"("memory_bytes":{"used":67108864,"limit":0},"regions":{"used":3,"limit":3}},)"
            R"("requests_per_second":1000,"workload":null}]})");
}

TEST(AdminViews, LingeringMemoryIsAColumnWhereThereIsSome) {
  std::vector<v1::TenantInfo> tenants = SomeTenants();
  *tenants[0].add_resources() = Use("lingering_bytes", 32u << 20, 0);
  EXPECT_EQ(
      TenantsText(tenants),
      "TENANT        SESSIONS           PINNED                MEMORY  REGIONS                 CALLS/S  LINGERING\n"
      "grant/ml         1 / 2  16 MiB / 64 MiB  [##........]  64 MiB    3 / 3  [##########]      1000     32 MiB\n"
      "guests/uid=0         0              0 B                   0 B        0                no limit\n");
}

TEST(AdminViews, TheDaemonsOwnMemoryIsAColumnWhereSomeIsUsed) {
  std::vector<v1::TenantInfo> tenants = SomeTenants();
  *tenants[0].add_resources() = Use("heap_bytes", 1u << 20, 256u << 20);
  EXPECT_EQ(TenantsText(tenants),
            "TENANT        SESSIONS           PINNED                MEMORY  REGIONS                 CALLS/S            "
            " HEAP\n"
            "grant/ml         1 / 2  16 MiB / 64 MiB  [##........]  64 MiB    3 / 3  [##########]      1000  1 MiB / "
            "256 MiB\n"
            "guests/uid=0         0              0 B                   0 B        0                no limit\n");
}

TEST(AdminViews, WorkloadsAreAColumnWhereOneIsKnown) {
  std::vector<v1::TenantInfo> tenants = SomeTenants();
  tenants[0].mutable_workload()->set_namespace_("ml");
  tenants[0].mutable_workload()->set_pod_name("train-0");
  tenants[0].mutable_workload()->set_container("main");
  EXPECT_EQ(TenantsText(tenants),
            "TENANT        SESSIONS           PINNED                MEMORY  REGIONS                 CALLS/S  WORKLOAD\n"
            "grant/ml         1 / 2  16 MiB / 64 MiB  [##........]  64 MiB    3 / 3  [##########]      1000  "
            "ml/train-0/main\n"
            "guests/uid=0         0              0 B                   0 B        0                no limit\n");
  EXPECT_EQ(TenantsJson(tenants)["tenants"][0]["workload"].dump(),
            R"({"namespace":"ml","pod":"train-0","container":"main"})");
  v1::GrantInfo grant;
  *grant.mutable_workload() = tenants[0].workload();
  grant.mutable_workload()->clear_container();
  grant.mutable_devices()->set_resource_name("rnicd.io/memory-64mi");
  grant.mutable_devices()->add_device_ids("m-0");
  EXPECT_NE(GrantsText({grant}).find("  WORKLOAD\n"), std::string::npos) << GrantsText({grant});
  EXPECT_NE(GrantsText({grant}).find("  ml/train-0\n"), std::string::npos) << GrantsText({grant});
  EXPECT_EQ(GrantsJson({grant})["grants"][0]["devices"].dump(), R"({"resource":"rnicd.io/memory-64mi","ids":["m-0"]})");
  EXPECT_TRUE(GrantsJson({v1::GrantInfo()})["grants"][0]["devices"].is_null());
}

TEST(AdminViews, BarIsFullOnlyWhenNothingIsLeftAndEmptyOnlyWhenNothingIsUsed) {
  EXPECT_EQ(UseBar(Use("regions", 0, 100)), "[..........]");
  EXPECT_EQ(UseBar(Use("regions", 1, 1'000'000)), "[#.........]");
  EXPECT_EQ(UseBar(Use("regions", 50, 100)), "[#####.....]");
  EXPECT_EQ(UseBar(Use("regions", 999'999, 1'000'000)), "[#########.]");
  EXPECT_EQ(UseBar(Use("regions", 100, 100)), "[##########]");
  // A limit may be lowered below the current use.
  EXPECT_EQ(UseBar(Use("regions", 200, 100)), "[##########]");
  EXPECT_EQ(UseBar(Use("regions", UINT64_MAX - 1, UINT64_MAX)), "[#########.]");
  EXPECT_EQ(UseBar(Use("regions", 5, 0)), "");
}

TEST(AdminViews, Listeners) {
  v1::ListenerInfo listener;
  listener.set_session_id(17);
  listener.set_tenant("guests");
  listener.set_listener_id(3);
  listener.set_adapter_name("soft0");
  listener.mutable_local()->set_address("fd00::1");
  listener.mutable_local()->set_port(49152);
  listener.set_name("guests/array");
  listener.set_reported(5);
  listener.set_refused(2);
  EXPECT_EQ(ListenersText({listener}),
            "SESSION  TENANT  LISTENER  ADAPTER  ADDRESS          NAME          STATE    REPORTED  REFUSED\n"
            "     17  guests         3  soft0    [fd00::1]:49152  guests/array  listens         5        2\n");
  EXPECT_EQ(ListenersJson({listener}).dump(),
            R"({"listeners":[{"session_id":"17","tenant":"guests","listener_id":"3","adapter_name":"soft0",)"
            R"("local":{"address":"fd00::1","port":49152},"name":"guests/array","paused":false,)"
            R"("reported":5,"refused":2}]})");
}

TEST(AdminViews, Connections) {
  v1::ConnectionInfo connection;
  connection.set_session_id(17);
  connection.set_tenant("guests");
  connection.set_connector_id(4);
  connection.set_adapter_name("soft0");
  connection.set_passive(true);
  connection.set_state(v1::CONNECTION_STATE_PEER_GONE);
  connection.mutable_local()->set_address("fd00::1");
  connection.mutable_local()->set_port(49152);
  connection.mutable_peer()->set_address("10.98.0.2");
  connection.mutable_peer()->set_port(50000);
  connection.set_qp_id(9);
  connection.set_age_ms(2500);
  connection.set_private_data_sent(8);
  connection.set_private_data_received(56);
  EXPECT_EQ(
      ConnectionsText({connection}),
      "SESSION  TENANT  CONNECTOR  ADAPTER  SIDE     STATE        AGE  LOCAL            PEER             SENT  "
      "RECEIVED\n"
      "     17  guests          4  soft0    passive  peer-gone  2.5 s  [fd00::1]:49152  10.98.0.2:50000   8 B      "
      "56 B\n");
  EXPECT_EQ(ConnectionsJson({connection}).dump(),
            R"({"connections":[{"session_id":"17","tenant":"guests","connector_id":"4","adapter_name":"soft0",)"
            R"("passive":true,"state":"peer-gone","age_ms":2500,"local":{"address":"fd00::1","port":49152},)"
            R"("peer":{"address":"10.98.0.2","port":50000},"qp_id":"9","private_data_sent":8,)"
            R"("private_data_received":56}]})");
  // A state of a newer daemon, and an address that is not known yet.
  connection.set_state(static_cast<v1::ConnectionState>(99));
  connection.clear_local();
  EXPECT_EQ(ConnectionsJson({connection})["connections"][0]["state"], "99");
  EXPECT_TRUE(ConnectionsJson({connection})["connections"][0]["local"].is_null());
}

TEST(AdminViews, Inspect) {
  v1::InspectSessionResponse inspected;
  v1::SessionInfo& session = *inspected.mutable_session();
  session.set_session_id(17);
  session.set_tenant("storage");
  session.set_pid(4242);
  session.set_uid(1000);
  session.set_gid(100);
  session.set_pod_uid("0d9e1b5c-90a4-4a3c-8f0e-6d7d5b3f2c11");
  session.set_age_ms(65'000);
  session.set_connections(2);
  session.set_ending(true);
  *session.add_resources() = Use("pinned_bytes", 4096, 8192);
  EXPECT_EQ(InspectText(inspected),
            "session      17 (ending)\n"
            "tenant       storage\n"
            "label        -\n"
            "pid          4242\n"
            "uid          1000\n"
            "gid          100\n"
            "pod          0d9e1b5c-90a4-4a3c-8f0e-6d7d5b3f2c11\n"
            "container    -\n"
            "age          1 m 5 s\n"
            "connections  2\n"
            "\n"
            "RESOURCE       USED  LIMIT\n"
            "pinned_bytes  4 KiB  8 KiB  [#####.....]\n");
  v1::RegionInfo& region = *inspected.add_regions();
  region.set_session_id(17);
  region.set_mr_id(5);
  region.set_state("created");
  EXPECT_NE(InspectText(inspected).find("\n\nSESSION  REGION"), std::string::npos) << InspectText(inspected);
  const Json json = InspectJson(inspected);
  EXPECT_EQ(json["session"]["session_id"], "17");
  EXPECT_EQ(json["session"]["ending"], true);
  ASSERT_EQ(json["regions"].size(), 1u);
  EXPECT_EQ(json["regions"][0]["mr_id"], "5");
}

TEST(AdminViews, Evicted) {
  v1::EvictSessionResponse evicted;
  evicted.set_reclaimed_regions(1);
  evicted.set_reclaimed_pinned_bytes(8192);
  evicted.set_reclaimed_memory_bytes(1u << 20);
  EXPECT_EQ(EvictedText(17, evicted), "evicted session 17; taken back: 1 region, 8 KiB pinned, 1 MiB of memory\n");
  EXPECT_EQ(EvictedJson(17, evicted).dump(),
            R"({"session_id":"17","reclaimed_regions":1,"reclaimed_pinned_bytes":8192,)"
            R"("reclaimed_memory_bytes":1048576})");
}

TEST(AdminViews, SecretIsShownWhenTheGrantIsMade) {
  v1::CreateGrantResponse grant;
  grant.set_grant_id(99);
  grant.set_tenant("grant/ml");
  grant.set_secret("rnicd-grant-1-2");
  EXPECT_EQ(NewGrantText(grant),
            "grant   99\n"
            "tenant  grant/ml\n"
            "secret  rnicd-grant-1-2\n"
            "\n"
            "The secret is shown this once. A workload presents it as RNICD_GRANT.\n");
  EXPECT_EQ(NewGrantJson(grant).dump(), R"({"grant_id":"99","tenant":"grant/ml","secret":"rnicd-grant-1-2"})");
}

TEST(AdminViews, DirectoryIsShownWhenAGrantWithADoorIsMade) {
  v1::CreateGrantResponse grant;
  grant.set_grant_id(99);
  grant.set_tenant("grant/ml");
  grant.set_socket_dir("/run/rnicd-doors/0000000000000063");
  EXPECT_EQ(NewGrantText(grant),
            "grant      99\n"
            "tenant     grant/ml\n"
            "directory  /run/rnicd-doors/0000000000000063\n"
            "\n"
            "Whoever connects there is admitted as the grant. Mount the directory read-only into one container,\n"
            "and set RNICD_SOCKET_DIR there to where it is mounted.\n");
  EXPECT_EQ(NewGrantJson(grant).dump(),
            R"({"grant_id":"99","tenant":"grant/ml","socket_dir":"/run/rnicd-doors/0000000000000063"})");
}

TEST(AdminViews, DoorsOfGrants) {
  v1::GrantInfo grant;
  grant.set_grant_id(99);
  grant.set_tenant("grant/ml");
  grant.mutable_door()->set_socket_dir("/run/rnicd-doors/0000000000000063");
  grant.mutable_door()->set_connections(3);
  grant.mutable_door()->set_refused(41);
  grant.mutable_door()->set_storms(2);
  EXPECT_EQ(DoorsText({grant}),
            "GRANT  TENANT    POD  CONNECTIONS  REFUSED  STORMS  DIRECTORY\n"
            "   99  grant/ml  any            3       41       2  /run/rnicd-doors/0000000000000063\n");
  EXPECT_EQ(DoorsJson({grant})["doors"][0].dump(),
            R"({"grant_id":"99","tenant":"grant/ml","pod_uid":"","workload":null,)"
            R"("socket_dir":"/run/rnicd-doors/0000000000000063","connections":3,"refused":41,"storms":2})");
  EXPECT_NE(GrantsText({grant, v1::GrantInfo()}).find("  DOOR\n"), std::string::npos);
  const Json listed = GrantsJson({grant, v1::GrantInfo()});
  EXPECT_EQ(listed["grants"][0]["door"]["connections"], 3);
  EXPECT_TRUE(listed["grants"][1]["door"].is_null());
}

TEST(AdminViews, Grants) {
  v1::GrantInfo bounded;
  bounded.set_grant_id(99);
  bounded.set_tenant("grant/ml");
  bounded.set_age_ms(1'000);
  bounded.set_remaining_ms(3'599'000);
  bounded.set_sessions(2);
  bounded.mutable_limits()->set_pinned_bytes(64u << 20);
  bounded.mutable_limits()->set_requests_per_second(1000);
  bounded.mutable_session_limits()->set_regions(7);
  v1::AddressRange& range = *bounded.mutable_connections()->add_connect();
  range.set_prefix("fd00::/8");
  range.set_first_port(80);
  range.set_last_port(90);
  bounded.mutable_connections()->add_accept()->set_prefix("::/0");
  v1::GrantInfo open;
  open.set_grant_id(100);
  open.set_tenant("grant/p");
  open.set_pod_uid("0123456789abcdef0123456789abcdef");
  EXPECT_EQ(GrantsText({bounded, open}),
            "GRANT  TENANT    POD                                AGE    ENDS IN  SESSIONS   MAY PIN    MEMORY   "
            "REGIONS   CALLS/S\n"
            "   99  grant/ml  any                                1 s  59 m 59 s         2    64 MiB  no limit  "
            "no limit      1000\n"
            "  100  grant/p   0123456789abcdef0123456789abcdef  0 ms      never         0  no limit  no limit  "
            "no limit  no limit\n");
  const Json json = GrantsJson({bounded, open});
  EXPECT_EQ(json["grants"][0]["grant_id"], "99");
  EXPECT_EQ(json["grants"][0]["remaining_ms"], 3'599'000);
  EXPECT_EQ(json["grants"][0]["limits"]["pinned_bytes"], 64u << 20);
  EXPECT_EQ(json["grants"][0]["limits"]["regions"], 0);
  EXPECT_EQ(json["grants"][0]["session_limits"]["regions"], 7);
  EXPECT_EQ(json["grants"][0]["connections"].dump(),
            R"({"listen":[],"connect":[{"prefix":"fd00::/8","first_port":80,"last_port":90}],)"
            R"("accept":[{"prefix":"::/0"}]})");
  EXPECT_TRUE(json["grants"][1]["remaining_ms"].is_null());
}

TEST(AdminViews, Health) {
  EXPECT_EQ(HealthText(true), "ready\n");
  EXPECT_EQ(HealthText(false), "not ready\n");
  EXPECT_EQ(HealthJson(true).dump(), R"({"ready":true})");
  EXPECT_EQ(HealthJson(false).dump(), R"({"ready":false})");
  EXPECT_EQ(LiveText(true), "alive\n");
  EXPECT_EQ(LiveText(false), "hangs\n");
  EXPECT_EQ(LiveJson(true).dump(), R"({"live":true})");
}

TEST(AdminViews, Drain) {
  v1::DrainResponse drain;
  EXPECT_EQ(DrainText(drain), "not draining: the daemon takes things on\n");
  drain.set_draining(true);
  EXPECT_EQ(DrainText(drain), "draining: nothing is left\n");
  drain.set_sessions(1);
  drain.set_regions(2);
  drain.set_pinned_bytes(8192);
  EXPECT_EQ(DrainText(drain), "draining: left are 1 session, 2 regions, 8 KiB pinned\n");
  EXPECT_EQ(DrainJson(drain).dump(), R"({"draining":true,"sessions":1,"regions":2,"pinned_bytes":8192})");
}

}  // namespace
}  // namespace rnicd::ctl
