// A device plugin's reports to the daemon: grants of the previous daemon, devices, and the containers that hold them.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/secrets/secret.h"
#include "tests/integration/operators/audit_lines.h"
#include "tests/support/admin_client.h"
#include "tests/support/calls/expect.h"
#include "tests/support/calls/raw_client.h"
#include "tests/support/metrics_page.h"
#include "tests/support/process/tested_provider.h"
#include "tests/support/shared_daemon.h"

namespace rnicd::test {
namespace {

constexpr char kMemory[] = "rnicd.io/memory-64mi";

v1::DeviceSet Devices(const std::vector<std::string>& ids) {
  v1::DeviceSet devices;
  devices.set_resource_name(kMemory);
  devices.mutable_device_ids()->Assign(ids.begin(), ids.end());
  return devices;
}

v1::PodInfo Holder(const std::string& pod_name, const std::vector<std::string>& ids) {
  v1::PodInfo pod;
  pod.set_namespace_("ml");
  pod.set_name(pod_name);
  v1::ContainerInfo* const container = pod.add_containers();
  container->set_name("main");
  *container->add_devices() = Devices(ids);
  return pod;
}

CallResult<v1::SetPodsResponse> SetPods(const DaemonProcess& daemon, const std::vector<v1::PodInfo>& pods) {
  v1::SetPodsRequest request;
  request.mutable_pods()->Assign(pods.begin(), pods.end());
  return RawClient(daemon.admin_socket()).Call(&AdminStub::SetPods, request);
}

std::string WorkloadOf(const v1::WorkloadName& workload) {
  return workload.namespace_() + "/" + workload.pod_name() + "/" + workload.container();
}

CallResult<v1::OpenSessionResponse> Present(RawClient& client, const std::string& secret) {
  v1::OpenSessionRequest request;
  request.set_grant(secret);
  return client.Call(&SessionStub::OpenSession, request);
}

class Workloads : public DaemonTest {
 protected:
  Workloads() : DaemonTest({kMetricsOnFreePort}) {}
  // The pods and the grants belong to the shared daemon, so remove them.
  void TearDown() override {
    ExpectOk(SetPods(daemon(), {}));
    for (const v1::GrantInfo& grant : AdminGrants(daemon())) {
      ExpectOk(RevokeGrant(daemon(), grant.grant_id()));
    }
    DaemonTest::TearDown();
  }

  v1::CreateGrantResponse Grant(const std::string& name, const std::vector<std::string>& ids) {
    v1::CreateGrantRequest request;
    request.set_name(name);
    *request.mutable_devices() = Devices(ids);
    const auto created = CreateGrant(daemon(), request);
    ExpectOk(created);
    return created.response;
  }
  std::string WorkloadOfTenant(const std::string& name) {
    const std::optional<v1::TenantInfo> tenant = AdminTenant(daemon(), name);
    return tenant.has_value() ? WorkloadOf(tenant->workload()) : "no tenant " + name;
  }
  MetricsPage Metrics() {
    const HttpAnswer answer = HttpGet(AdminStatus(daemon()).metrics_address(), "/metrics");
    EXPECT_EQ(answer.status, 200);
    return MetricsPage(answer.body);
  }
};

TEST_F(Workloads, TheHolderOfAGrantsDevicesIsSeenOnceItIsTold) {
  const v1::CreateGrantResponse grant = Grant("job", {"m-0", "m-1"});
  EXPECT_EQ(WorkloadOfTenant("grant/job"), "//");
  ExpectOk(SetPods(daemon(), {Holder("train-0", {"m-1", "m-0"}), Holder("train-1", {"m-2"})}));
  EXPECT_EQ(WorkloadOfTenant("grant/job"), "ml/train-0/main");
  const std::vector<v1::GrantInfo> grants = AdminGrants(daemon());
  ASSERT_EQ(grants.size(), 1u);
  EXPECT_EQ(WorkloadOf(grants[0].workload()), "ml/train-0/main");
  EXPECT_EQ(grants[0].devices().resource_name(), kMemory);
  EXPECT_EQ(grants[0].devices().device_ids_size(), 2);
  const MetricsPage page = Metrics();
  EXPECT_EQ(page.faults(), "");
  EXPECT_EQ(page.Value("rnicd_tenant_info{tenant=\"grant/job\",namespace=\"ml\",pod=\"train-0\",container=\"main\"}"),
            1);
  EXPECT_EQ(page.Value("rnicd_tenant_devices{tenant=\"grant/job\",resource=\"rnicd.io/memory-64mi\"}"), 2);
  EXPECT_EQ(page.Value("rnicd_device_info{tenant=\"grant/job\",resource=\"rnicd.io/memory-64mi\",device=\"m-1\"}"), 1);
  Grant("later", {"m-2"});
  EXPECT_EQ(WorkloadOfTenant("grant/later"), "ml/train-1/main") << "the kubelet was first";
  ExpectOk(SetPods(daemon(), {}));
  EXPECT_EQ(WorkloadOfTenant("grant/job"), "//");
  ExpectOk(RevokeGrant(daemon(), grant.grant_id()));
  EXPECT_EQ(Metrics().Total("rnicd_device_info"), 1) << "of the other grant";
}

TEST_F(Workloads, TheAdaptersOfTheStatusAreTriedAndHealthy) {
  const v1::GetStatusResponse status = AdminStatus(daemon());
  ASSERT_GT(status.adapters_size(), 0);
  for (const v1::AdapterStatus& adapter : status.adapters()) {
    EXPECT_FALSE(adapter.name().empty());
    EXPECT_TRUE(adapter.healthy()) << adapter.failure();
    EXPECT_EQ(adapter.failure(), "");
  }
}

// --- across a restart, with daemons of the test's own ---

std::string Sha256(const std::string& text) {
  const SecretDigest digest = SecretDigest::Of(text);
  return std::string(digest.bytes().begin(), digest.bytes().end());
}

TEST(GrantRenewal, ASecretIsGoodAgainOnceItsGrantIsRenewedAtTheNextDaemon) {
  auto first = DaemonProcess::Start();
  ASSERT_TRUE(first.ok()) << first.status();
  const std::shared_ptr<TempDir> directory = (*first)->directory();
  v1::CreateGrantRequest request;
  request.set_name("job");
  const auto created = CreateGrant(**first, request);
  ExpectOk(created);
  const std::string secret = created.response.secret();
  (*first)->KillHard();

  const std::string audit_log = directory->path() + "/audit.log";
  auto second = DaemonProcess::Start({.flags = {"--audit_log=" + audit_log}, .directory = directory});
  ASSERT_TRUE(second.ok()) << second.status();
  {
    RawClient client((*second)->rpc_socket());
    ExpectRefused(Present(client, secret), ErrorReason::GRANT_REFUSED, "grant");
    request.mutable_renewal()->set_grant_id(created.response.grant_id());
    request.mutable_renewal()->set_secret_sha256(Sha256(secret));
    *request.mutable_devices() = Devices({"m-0"});
    ExpectOk(SetPods(**second, {Holder("train-0", {"m-0"})}));
    const auto renewed = CreateGrant(**second, request);
    ExpectOk(renewed);
    EXPECT_EQ(renewed.response.grant_id(), created.response.grant_id());
    EXPECT_EQ(renewed.response.secret(), "");
    EXPECT_EQ(renewed.response.tenant(), "grant/job");
    const auto opened = Present(client, secret);
    ExpectOk(opened);
    EXPECT_EQ(opened.response.tenant(), "grant/job");
  }
  const absl::Status stopped = (*second)->Stop();
  EXPECT_TRUE(stopped.ok()) << stopped;
  const AuditLines lines(audit_log);
  const AuditLines::Json line = lines.Only({{"what", "SessionService.OpenSession"}, {"result", "allowed"}});
  EXPECT_EQ(line["namespace"], "ml");
  EXPECT_EQ(line["pod"], "train-0");
  EXPECT_EQ(line["container"], "main");
  EXPECT_EQ(line["devices"], "rnicd.io/memory-64mi=m-0");
}

}  // namespace
}  // namespace rnicd::test
