#include "client/cpp/client.h"

#include <cstdlib>
#include <future>

#include "base/status.h"
#include "client/cpp/fake_daemon_test.h"
#include "client/cpp/transport_failure.h"

namespace rnicd::inline client {
namespace {

using std::chrono::milliseconds;

constexpr uint64_t kSize = 1u << 20;

class ClientTest : public testing::Test {
 protected:
  absl::StatusOr<Client> Connect(ClientOptions options = {}) {
    options.socket_dir = daemon_.socket_dir();
    return Client::Connect(options);
  }

  FakeDaemon daemon_;
};

TEST_F(ClientTest, ConnectOpensASessionAndTheLastOwnerClosesIt) {
  {
    const auto client = Connect();
    ASSERT_TRUE(client.ok()) << client.status();
    EXPECT_EQ(client->session_id(), SessionId{7});
    EXPECT_EQ(daemon_.state().sessions_open, 1);
  }
  EXPECT_EQ(daemon_.state().sessions_open, 0);
}

TEST_F(ClientTest, RefusedSessionIsAnErrorWithItsReason) {
  const auto client = Connect({.label = "refuse"});
  EXPECT_TRUE(FailedWith(client.status(), ErrorReason::QUOTA_SESSIONS));
  EXPECT_EQ(NtStatusOf(client.status()), NtStatus::kInsufficientResources);
}

TEST_F(ClientTest, GrantComesFromTheOptionsOrTheEnvironment) {
  unsetenv("RNICD_GRANT");
  EXPECT_EQ(Connect()->tenant(), "guests");
  EXPECT_EQ(Connect({.grant = "one"})->tenant(), "grant/one");
  setenv("RNICD_GRANT", "two", 1);
  EXPECT_EQ(Connect()->tenant(), "grant/two");
  EXPECT_EQ(Connect({.grant = "one"})->tenant(), "grant/one");
  setenv("RNICD_GRANT", "wrong", 1);
  EXPECT_TRUE(FailedWith(Connect().status(), ErrorReason::GRANT_REFUSED));
  unsetenv("RNICD_GRANT");
}

TEST_F(ClientTest, AbsentDaemonIsATransportFailureAtOnce) {
  const auto start = std::chrono::steady_clock::now();
  const auto client = Client::Connect({.socket_dir = daemon_.socket_dir() + "/absent"});
  EXPECT_EQ(client.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(IsTransportFailure(client.status()));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

TEST_F(ClientTest, OverlongSocketDirectoryIsRefusedHere) {
  const auto client = Client::Connect({.socket_dir = std::string(200, 'x')});
  EXPECT_TRUE(FailedWith(client.status(), ErrorReason::FIELD_OUT_OF_RANGE));
  EXPECT_EQ(ErrorInfoOf(client.status()).field, "socket_dir");
}

TEST_F(ClientTest, AdaptersInfoAndSessionAreConverted) {
  const auto client = Connect();
  const auto adapters = client->ListAdapters();
  ASSERT_TRUE(adapters.ok() && adapters->size() == 1);
  EXPECT_EQ(adapters->front().name, "soft0");
  EXPECT_EQ(adapters->front().numa_node, -1);
  EXPECT_EQ(adapters->front().info.max_registration_size, 1u << 30);
  EXPECT_EQ(daemon_.adapters_opened(), 0);

  const auto info = client->QueryAdapterInfo();
  ASSERT_TRUE(info.ok());
  EXPECT_EQ(info->version, (NdkVersion{.major = 1, .minor = 2}));
  EXPECT_EQ(info->rdma_technology, RdmaTechnology::kRoceV2);
  EXPECT_TRUE(client->QueryAdapterInfo().ok());
  EXPECT_EQ(daemon_.adapters_opened(), 1);

  const auto session = client->GetSession();
  ASSERT_TRUE(session.ok() && session->resources.size() == 1);
  EXPECT_EQ(session->label, "fake");
  EXPECT_EQ(session->resources.front().limit, 1000u);
}

TEST_F(ClientTest, UnknownAdapterIsRefusedAndTriedAgain) {
  const auto client = Connect({.adapter_name = "absent"});
  EXPECT_TRUE(FailedWith(client->QueryAdapterInfo().status(), ErrorReason::ADAPTER_NOT_FOUND));
  EXPECT_TRUE(FailedWith(client->QueryAdapterInfo().status(), ErrorReason::ADAPTER_NOT_FOUND));
  EXPECT_EQ(daemon_.adapters_opened(), 2);
}

TEST_F(ClientTest, MovedFromClientRefusesEveryCall) {
  auto client = Connect();
  const Client taken = *std::move(client);
  EXPECT_EQ(client->session_id(), SessionId{});
  EXPECT_EQ(client->tenant(), "");
  EXPECT_TRUE(FailedWith(client->ListAdapters().status(), ErrorReason::SESSION_REQUIRED));
  EXPECT_TRUE(FailedWith(client->QueryAdapterInfo().status(), ErrorReason::SESSION_REQUIRED));
  EXPECT_TRUE(FailedWith(client->GetSession().status(), ErrorReason::SESSION_REQUIRED));
  EXPECT_TRUE(FailedWith(client->Close().status(), ErrorReason::SESSION_REQUIRED));
  EXPECT_TRUE(FailedWith(Memory::Allocate(*client, {.size = kSize}).status(), ErrorReason::SESSION_REQUIRED));
  EXPECT_TRUE(FailedWith(Memory::Import(*client, 0, kSize).status(), ErrorReason::SESSION_REQUIRED));
  EXPECT_TRUE(FailedWith(MemoryRegion::RegisterChain(*client, {}, 1, 0).status(), ErrorReason::SESSION_REQUIRED));
  EXPECT_TRUE(taken.GetSession().ok());
}

TEST_F(ClientTest, CloseReportsWhatWasHeldAndIsNotRepeatedByDestructors) {
  auto client = Connect();
  const auto memory = Memory::Allocate(*client, {.size = kSize});
  const auto region = MemoryRegion::Register(*memory, 0);
  const auto reclaimed = client->Close();
  ASSERT_TRUE(reclaimed.ok());
  EXPECT_EQ(reclaimed->regions, 1u);
  EXPECT_EQ(daemon_.state().sessions_open, 0);
  memory->bytes()[0] = std::byte{1};
}

TEST_F(ClientTest, EndOfSessionIsReportedWithItsCause) {
  std::promise<absl::Status> ended;
  const auto client = Connect({.on_session_ended = [&ended](const absl::Status& why) { ended.set_value(why); }});
  daemon_.EndSession("evicted");
  const absl::Status why = ended.get_future().get();
  EXPECT_TRUE(FailedWith(why, ErrorReason::SESSION_ENDING));
  EXPECT_EQ(ErrorInfoOf(why).field, "evicted");
}

TEST_F(ClientTest, LostDaemonIsReportedAndDestructorsDoNotHang) {
  std::promise<absl::Status> ended;
  const auto start = std::chrono::steady_clock::now();
  {
    const auto client = Connect({.on_session_ended = [&ended](const absl::Status& why) { ended.set_value(why); }});
    const auto memory = Memory::Allocate(*client, {.size = kSize});
    const auto region = MemoryRegion::Register(*memory, 0);
    ASSERT_TRUE(region.ok());
    daemon_.Die();
    EXPECT_TRUE(IsTransportFailure(ended.get_future().get()));
    EXPECT_TRUE(IsTransportFailure(client->GetSession().status()));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

TEST_F(ClientTest, OwnCloseIsNotReportedAsAnEnd) {
  std::atomic<int> reports = 0;
  {
    auto client = Connect({.on_session_ended = [&reports](const absl::Status&) { ++reports; }});
    ASSERT_TRUE(client->Close().ok());
  }
  {
    const auto client = Connect({.on_session_ended = [&reports](const absl::Status&) { ++reports; }});
  }
  EXPECT_EQ(reports, 0);
}

}  // namespace
}  // namespace rnicd::inline client
