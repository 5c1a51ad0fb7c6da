// The daemon reports correctly and in time, over HTTP and gRPC's health protocol, whether its card is usable.
#include <chrono>
#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "grpc/health/v1/health.grpc.pb.h"
#include "tests/support/admin_client.h"
#include "tests/support/calls/expect.h"
#include "tests/support/metrics_page.h"
#include "tests/support/process/held_card.h"
#include "tests/support/process/tested_provider.h"
#include "tests/support/shared_daemon.h"
#include "tests/support/test_session.h"

namespace rnicd::test {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

constexpr uint64_t kRoomInTheCard = 2;

HealthCheckRequest Of(const std::string& service) {
  HealthCheckRequest request;
  request.set_service(service);
  return request;
}

CallResult<HealthCheckResponse> Check(const std::string& socket, const std::string& service = "") {
  return RawClient(socket).Call(&HealthStub::Check, Of(service));
}

// An operator's open Watch; the destructor cancels it.
class Watcher {
 public:
  Watcher(const std::string& socket, const std::string& service) : client_(socket) {
    context_.set_deadline(std::chrono::system_clock::now() + 2 * kTimeout);
    stub_ = grpc::health::v1::Health::NewStub(client_.channel());
    stream_ = stub_->Watch(&context_, Of(service));
  }
  ~Watcher() { context_.TryCancel(); }
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  // The next response; UNKNOWN if the stream has ended.
  HealthCheckResponse::ServingStatus Next() {
    HealthCheckResponse response;
    return stream_->Read(&response) ? response.status() : HealthCheckResponse::UNKNOWN;
  }
  CallOutcome End() { return OutcomeOf(stream_->Finish()); }

 private:
  RawClient client_;
  std::unique_ptr<grpc::health::v1::Health::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<HealthCheckResponse>> stream_;
};

// A card so small that a client can fill it: it then refuses every registration, including the daemon's probes.
class Health : public DaemonTest {
 protected:
  Health() : DaemonTest(Flags()) {}

  // A test before this one may have left the card full, until the next probe.
  void SetUp() override {
    DaemonTest::SetUp();
    ASSERT_TRUE(Eventually([&] { return CheckNow() == HealthCheckResponse::SERVING; }));
  }

  static std::vector<std::string> Flags() {
    std::vector<std::string> flags = OneAdapterFlags();
    flags.insert(flags.end(),
                 {kMetricsOnFreePort, "--health_interval_ms=10", ProviderFlag("max_regions", kRoomInTheCard)});
    return flags;
  }

  HttpAnswer Readyz() { return HttpGet(address_, "/readyz"); }
  HealthCheckResponse::ServingStatus CheckNow(const std::string& service = "") {
    const auto answer = Check(daemon().admin_socket(), service);
    ExpectOk(answer);
    return answer.response.status();
  }

  // Registers until nothing more fits. A probe may briefly occupy the last slot.
  static void Fill(TestSession& session, std::vector<uint64_t>& regions) {
    const uint64_t memory = session.SealedMemory(kPage);
    for (uint64_t count = 0; count < kRoomInTheCard; ++count) {
      const uint64_t region = session.CreateMr();
      const auto request = RegisterRequest(region, {MdlEntry(memory, 0, kPage, kBase)}, kPage);
      EXPECT_TRUE(Eventually([&] { return session.Register(request).ok(); }));
      regions.push_back(region);
    }
  }

  const std::string address_ = AdminStatus(daemon()).metrics_address();
};

TEST_F(Health, FlipsWhenTheCardRefusesRegistrationsAndBackWhenItTakesThem) {
  EXPECT_EQ(Readyz().status, 200);
  EXPECT_EQ(Readyz().body, "ready\n" + AdapterUnderTest() + " ok\n");
  EXPECT_EQ(CheckNow(), HealthCheckResponse::SERVING);

  TestSession session(daemon());
  std::vector<uint64_t> regions;
  Fill(session, regions);
  EXPECT_TRUE(Eventually([&] { return Readyz().status == 503; })) << Readyz().body;
  EXPECT_TRUE(
      Readyz().body.starts_with("not ready\n" + AdapterUnderTest() + " failing: DEVICE_OUT_OF_RESOURCES since "))
      << Readyz().body;
  EXPECT_TRUE(Eventually([&] { return CheckNow() == HealthCheckResponse::NOT_SERVING; }));
  EXPECT_EQ(HttpGet(address_, "/healthz").status, 200) << "the process itself is well";
  EXPECT_EQ(CheckNow("rnicd.live"), HealthCheckResponse::SERVING);
  EXPECT_TRUE(Eventually([&] { return daemon().log().find("adapter unhealthy") != std::string::npos; }));

  ExpectOk(session.Deregister(regions.front()));
  EXPECT_TRUE(Eventually([&] { return Readyz().status == 200; })) << Readyz().body;
  EXPECT_TRUE(Eventually([&] { return CheckNow() == HealthCheckResponse::SERVING; }));
}

TEST_F(Health, WatchTellsWhatIsAndThenEveryChange) {
  Watcher watcher(daemon().admin_socket(), "rnicd");
  Watcher other(daemon().admin_socket(), "");
  EXPECT_EQ(watcher.Next(), HealthCheckResponse::SERVING);
  EXPECT_EQ(other.Next(), HealthCheckResponse::SERVING);
  TestSession session(daemon());
  std::vector<uint64_t> regions;
  Fill(session, regions);
  EXPECT_EQ(watcher.Next(), HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(other.Next(), HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(Watcher(daemon().admin_socket(), "").Next(), HealthCheckResponse::NOT_SERVING) << "who comes now, too";
  ExpectOk(session.Deregister(regions.front()));
  EXPECT_EQ(watcher.Next(), HealthCheckResponse::SERVING);
  EXPECT_EQ(other.Next(), HealthCheckResponse::SERVING);
}

TEST_F(Health, TheDaemonHasTwoNamesAndNoOther) {
  EXPECT_EQ(CheckNow(""), HealthCheckResponse::SERVING);
  EXPECT_EQ(CheckNow("rnicd"), HealthCheckResponse::SERVING);
  EXPECT_EQ(CheckNow("rnicd.live"), HealthCheckResponse::SERVING);
  ExpectRefused(Check(daemon().admin_socket(), "rnicd.v1.MemoryService"), ErrorReason::HEALTH_SERVICE_UNKNOWN,
                "service");
  EXPECT_EQ(Watcher(daemon().admin_socket(), "other").Next(), HealthCheckResponse::SERVICE_UNKNOWN);
}

TEST_F(Health, IsNotForWorkloads) {
  ExpectRefused(Check(daemon().rpc_socket()), ErrorReason::METHOD_NOT_PERMITTED);
  Watcher watcher(daemon().rpc_socket(), "");
  EXPECT_EQ(watcher.Next(), HealthCheckResponse::UNKNOWN);
  ExpectRefused(watcher.End(), ErrorReason::METHOD_NOT_PERMITTED);
}

// The daemon serves, reports that its card does not, and can be stopped.
TEST(HealthOfAHangingCard, IsKnownFromTheStartAndHoldsNobodyUp) {
  const HeldRegistrations held;
  const auto started = DaemonProcess::Start({.flags = {kMetricsOnFreePort, "--health_timeout_ms=200",
                                                       "--drain_timeout_ms=300", HoldableRegistrationsFlag()}});
  ASSERT_TRUE(started.ok()) << started.status();
  DaemonProcess& daemon = **started;
  const v1::GetStatusResponse status = AdminStatus(daemon);
  EXPECT_EQ(status.device_regions(), 0u);
  const HttpAnswer answer = HttpGet(status.metrics_address(), "/readyz");
  EXPECT_EQ(answer.status, 503);
  EXPECT_TRUE(answer.body.starts_with("not ready\n" + AdapterUnderTest() + " failing: DEVICE_FAILED since "))
      << answer.body;
  const auto check = Check(daemon.admin_socket());
  ExpectOk(check);
  EXPECT_EQ(check.response.status(), HealthCheckResponse::NOT_SERVING);
  daemon.process().Signal(SIGTERM);
  const std::optional<ProcessEnd> end = daemon.process().WaitForEnd();
  ASSERT_TRUE(end.has_value()) << "the daemon does not stop";
  EXPECT_EQ(end->exit_code, 1) << "it says that a probe did not come back";
}

// A card that does not return holds the thread that serves workloads, as any hang would.
TEST(HealthOfAHangingDaemon, IsReportedByEveryProbeWithTheThreadThatHangs) {
  const auto started = DaemonProcess::Start(
      {.flags = {kMetricsOnFreePort, "--health_timeout_ms=200", "--rpc_threads=1", HoldableRegistrationsFlag()}});
  ASSERT_TRUE(started.ok()) << started.status();
  DaemonProcess& daemon = **started;
  const std::string address = AdminStatus(daemon).metrics_address();
  Watcher watcher(daemon.admin_socket(), "rnicd.live");
  EXPECT_EQ(watcher.Next(), HealthCheckResponse::SERVING);
  EXPECT_EQ(HttpGet(address, "/healthz").body, "ok\n");

  TestSession session(daemon);
  const uint64_t memory = session.SealedMemory(kPage);
  const auto request = RegisterRequest(session.CreateMr(), {MdlEntry(memory, 0, kPage, kBase)}, kPage);
  const HeldRegistrations held;
  std::thread caller([&] { (void)session.Register(request); });
  EXPECT_EQ(watcher.Next(), HealthCheckResponse::NOT_SERVING);
  const HttpAnswer alive = HttpGet(address, "/healthz");
  EXPECT_EQ(alive.status, 503);
  EXPECT_TRUE(alive.body.starts_with("hangs\nrpc loop 1 has not answered for ")) << alive.body;
  EXPECT_EQ(alive.body.find('\n', alive.body.find("for ")), alive.body.size() - 1) << "nothing else hangs";
  EXPECT_TRUE(HttpGet(address, "/readyz").body.starts_with("not ready\nrpc loop 1 has not answered for "));
  EXPECT_EQ(Check(daemon.admin_socket(), "rnicd.live").response.status(), HealthCheckResponse::NOT_SERVING);
  EXPECT_TRUE(Eventually([&] { return daemon.log().find("does not serve") != std::string::npos; })) << daemon.log();
  daemon.KillHard();
  caller.join();
}

}  // namespace
}  // namespace rnicd::test
