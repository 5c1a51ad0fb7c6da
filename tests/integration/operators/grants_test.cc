// Grants: secrets that make their bearer a separate tenant until they end.
#include <algorithm>
#include <chrono>
#include <future>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/ndk/access_rights.h"
#include "base/status.h"
#include "client/cpp/client.h"
#include "client/cpp/completion_queue.h"
#include "client/cpp/memory.h"
#include "client/cpp/memory_region.h"
#include "client/cpp/queue_pair.h"
#include "client/cpp/work_chain.h"
#include "tests/integration/test_grant.h"
#include "tests/support/admin_client.h"
#include "tests/support/calls/expect.h"
#include "tests/support/calls/raw_client.h"
#include "tests/support/process/wait.h"
#include "tests/support/shared_daemon.h"

namespace rnicd::test {
namespace {

constexpr uint64_t kPageBytes = 4096;
constexpr char kSomePod[] = "0d9e1b5c-90a4-4a3c-8f0e-6d7d5b3f2c11";

class Grants : public DaemonTest {
 protected:
  // At this level a refused call is logged. Grants and others may connect with each other.
  Grants() : DaemonTest({"--log_level=debug", LimitsFlag("connections { connect { prefix: '::/0' } }")}) {}

  static v1::CreateGrantRequest Named(const std::string& name) {
    v1::CreateGrantRequest request;
    request.set_name(name);
    request.mutable_connections()->add_connect()->set_prefix("::/0");
    return request;
  }
  absl::StatusOr<Client> Connect(const std::string& secret, std::promise<std::string>* end = nullptr) {
    ClientOptions options{.socket_dir = daemon().socket_dir(), .label = "grants", .grant = secret};
    if (end != nullptr) {
      options.on_session_ended = [end](const absl::Status& why) { end->set_value(ErrorInfoOf(why).field); };
    }
    return Client::Connect(std::move(options));
  }
  CallOutcome Present(const std::string& secret) {
    RawClient client(daemon().rpc_socket());
    v1::OpenSessionRequest request;
    request.set_grant(secret);
    return client.Call(&SessionStub::OpenSession, request);
  }
  void ExpectGrantRefused(const std::string& secret, Where where = Where::current()) {
    ExpectRefused(Present(secret), ErrorReason::GRANT_REFUSED, "grant", where);
  }
  bool IsListed(uint64_t id) {
    return std::ranges::any_of(AdminGrants(daemon()),
                               [id](const v1::GrantInfo& grant) { return grant.grant_id() == id; });
  }
};

void ExpectFigures(const absl::Status& refused, ErrorReason reason, uint64_t limit, uint64_t used, uint64_t requested) {
  EXPECT_TRUE(FailedWith(refused, reason)) << refused;
  const ErrorInfo info = ErrorInfoOf(refused);
  EXPECT_EQ(info.limit, limit);
  EXPECT_EQ(info.used, used);
  EXPECT_EQ(info.requested, requested);
}

// --- who may present one ---

TEST_F(Grants, SecretMakesItsBearerATenantOfItsOwn) {
  TestGrant grant(daemon(), Named("own"));
  EXPECT_EQ(grant.tenant(), "grant/own");
  const auto without = Connect("");
  const auto first = Connect(grant.secret());
  const auto second = Connect(grant.secret());
  ASSERT_TRUE(without.ok() && first.ok() && second.ok()) << first.status();
  EXPECT_EQ(first->tenant(), "grant/own");
  EXPECT_EQ(second->tenant(), "grant/own");
  EXPECT_NE(without->tenant(), "grant/own");
  const std::optional<v1::TenantInfo> tenant = AdminTenant(daemon(), "grant/own");
  ASSERT_TRUE(tenant.has_value());
  EXPECT_EQ(tenant->grant_id(), grant.id());
  EXPECT_EQ(tenant->rule(), "");
  EXPECT_EQ(tenant->sessions(), 2u);
  const std::vector<v1::GrantInfo> grants = AdminGrants(daemon());
  ASSERT_EQ(grants.size(), 1u);
  EXPECT_EQ(grants[0].grant_id(), grant.id());
  EXPECT_EQ(grants[0].sessions(), 2u);
  EXPECT_FALSE(grants[0].has_remaining_ms());
  EXPECT_EQ(AdminStatus(daemon()).grants(), 1u);
}

TEST_F(Grants, GrantOfAPodIsForThatPodOnly) {
  v1::CreateGrantRequest request = Named("pod");
  request.set_pod_uid(kSomePod);
  TestGrant grant(daemon(), request);
  ExpectGrantRefused(grant.secret());
  EXPECT_EQ(AdminGrants(daemon()).at(0).pod_uid(), kSomePod);
}

// --- limits ---

TEST_F(Grants, LimitsHoldForAllItsSessionsTogether) {
  v1::CreateGrantRequest request = Named("limited");
  request.mutable_limits()->set_pinned_bytes(2 * kPageBytes);
  request.mutable_limits()->set_sessions(2);
  request.mutable_session_limits()->set_regions(1);
  TestGrant grant(daemon(), request);
  EXPECT_EQ(AdminGrants(daemon()).at(0).limits().pinned_bytes(), 2 * kPageBytes);
  EXPECT_EQ(AdminGrants(daemon()).at(0).session_limits().regions(), 1u);
  const auto first = Connect(grant.secret());
  const auto second = Connect(grant.secret());
  ASSERT_TRUE(first.ok() && second.ok()) << second.status();
  ExpectFigures(Connect(grant.secret()).status(), ErrorReason::QUOTA_SESSIONS, 2, 2, 1);

  const auto page = Memory::Allocate(*first, {.size = kPageBytes});
  const auto pages = Memory::Allocate(*second, {.size = 2 * kPageBytes});
  ASSERT_TRUE(page.ok() && pages.ok()) << pages.status();
  const auto region = MemoryRegion::Register(*page, 0);
  ASSERT_TRUE(region.ok()) << region.status();
  ExpectFigures(MemoryRegion::Register(*page, 0).status(), ErrorReason::QUOTA_REGIONS, 1, 1, 1);
  ExpectFigures(MemoryRegion::Register(*pages, 0).status(), ErrorReason::QUOTA_PINNED_BYTES, 2 * kPageBytes, kPageBytes,
                2 * kPageBytes);
  // Clients without a grant are not affected.
  const auto without = Connect("");
  ASSERT_TRUE(without.ok()) << without.status();
  const auto free = Memory::Allocate(*without, {.size = 4 * kPageBytes});
  ASSERT_TRUE(free.ok()) << free.status();
  EXPECT_TRUE(MemoryRegion::Register(*free, 0).ok());
}

// --- the end of a grant ---

// A session with memory that a peer may write to, and the peer.
struct Written {
  // `client` belongs to the owner.
  Written(const Client& client, const Client& peer)
      : memory(Must(Memory::Allocate(client, {.size = kPageBytes}))),
        region(Must(MemoryRegion::Register(memory, kMrFlagRemoteWrite))),
        owner_queue(Must(CompletionQueue::Create(client, 16))),
        owner_pair(Must(QueuePair::Create(owner_queue, owner_queue, {}))),
        peer_queue(Must(CompletionQueue::Create(peer, 16))),
        peer_pair(Must(QueuePair::Create(peer_queue, peer_queue, {}))) {
    EXPECT_TRUE(owner_pair.Connect(peer_pair.address()).ok());
    EXPECT_TRUE(peer_pair.Connect(owner_pair.address()).ok());
  }

  template <typename Value>
  static Value Must(absl::StatusOr<Value> value) {
    if (!value.ok()) {
      ADD_FAILURE() << value.status();
      std::abort();
    }
    return *std::move(value);
  }

  // The peer writes this to the start of the memory; true on success.
  bool Write(const std::string& text) {
    const RemoteMemory remote{.address = region.base_address(), .token = region.remote_token()};
    const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
    const absl::StatusOr<PostOutcome> outcome = peer_pair.Post(WorkChain().WriteInline(bytes, remote, {}));
    if (!outcome.ok() || !outcome->failure.ok()) {
      return false;
    }
    const auto completions = peer_queue.PollFor(1, kTimeout);
    return completions.ok() && completions->size() == 1 && completions->front().status == NtStatus::kSuccess;
  }
  std::string Text(size_t count) const {
    return std::string(reinterpret_cast<const char*>(memory.bytes().data()), count);
  }

  Memory memory;
  MemoryRegion region;
  CompletionQueue owner_queue;
  QueuePair owner_pair;
  CompletionQueue peer_queue;
  QueuePair peer_pair;
};

// The session end that the library reports; empty on timeout.
std::string EndOf(std::promise<std::string>& end) {
  std::future<std::string> told = end.get_future();
  return told.wait_for(kTimeout) == std::future_status::ready ? told.get() : "";
}

TEST_F(Grants, Property07_TokensDieWhenTheGrantIsRevoked) {
  TestGrant grant(daemon(), GrantFor("revoked", {.connect = kEveryAddress}));
  const TestGrant of_peer(daemon(), GrantFor("peer", {.connect = kEveryAddress}));
  std::promise<std::string> end;
  const auto owner = Connect(grant.secret(), &end);
  const auto peer = Connect(of_peer.secret());
  ASSERT_TRUE(owner.ok() && peer.ok()) << owner.status();
  Written written(*owner, *peer);
  EXPECT_TRUE(written.Write("before"));
  EXPECT_EQ(written.Text(6), "before");
  const auto revoked = grant.Revoke();
  ExpectOk(revoked);
  EXPECT_EQ(revoked.response.sessions_ended(), 1u);
  EXPECT_EQ(EndOf(end), "grant_revoked");
  EXPECT_TRUE(Eventually([&] { return AdminSessions(daemon()).size() == 1; }));
  EXPECT_FALSE(written.Write("after!"));
  EXPECT_EQ(written.Text(6), "before");
  ExpectGrantRefused(grant.secret());
  // Only the grant's sessions end.
  EXPECT_TRUE(peer->GetSession().ok());
}

TEST_F(Grants, Property07_TokensDieWhenTheGrantIsOver) {
  v1::CreateGrantRequest request = GrantFor("short", {.connect = kEveryAddress});
  const std::chrono::milliseconds lifetime(2'000 * kSlowness);
  request.set_lifetime_ms(static_cast<uint64_t>(lifetime.count()));
  TestGrant grant(daemon(), request);
  grant.ExpectOver();
  const TestGrant of_peer(daemon(), GrantFor("peer", {.connect = kEveryAddress}));
  std::promise<std::string> end;
  const auto owner = Connect(grant.secret(), &end);
  const auto peer = Connect(of_peer.secret());
  ASSERT_TRUE(owner.ok() && peer.ok()) << owner.status();
  Written written(*owner, *peer);
  EXPECT_TRUE(written.Write("before"));
  for (const v1::GrantInfo& listed : AdminGrants(daemon())) {
    EXPECT_LE(listed.remaining_ms(), request.lifetime_ms());
  }
  EXPECT_EQ(EndOf(end), "grant_expired");
  EXPECT_TRUE(Eventually([&] { return AdminSessions(daemon()).size() == 1; }));
  EXPECT_FALSE(written.Write("after!"));
  EXPECT_EQ(written.Text(6), "before");
  ExpectGrantRefused(grant.secret());
  EXPECT_FALSE(IsListed(grant.id()));
}

// --- secrecy ---

TEST_F(Grants, SecretsAreNowhereButInTheAnswer) {
  TestGrant grant(daemon(), Named("secret"));
  ExpectOk(Present(grant.secret()));
  const std::string wrong = grant.secret() + "77";
  ExpectGrantRefused(wrong);
  const auto client = Connect(grant.secret());
  ASSERT_TRUE(client.ok()) << client.status();
  const auto dump = RawClient(daemon().admin_socket()).Call(&AdminStub::DumpState, {});
  ExpectOk(dump);
  // The log is written in order: once the line of this session is there, all earlier ones are.
  const std::string id = std::to_string(client->session_id().value);
  EXPECT_TRUE(Eventually([&] { return daemon().log().find(id) != std::string::npos; }));
  const std::string bits = grant.secret().substr(grant.secret().rfind('-') + 1);
  ASSERT_EQ(bits.size(), 64u);
  for (const std::string& text : {daemon().log(), dump.response.json(), AdminGrants(daemon()).at(0).DebugString()}) {
    EXPECT_EQ(text.find(bits.substr(0, 16)), std::string::npos);
    EXPECT_EQ(text.find(bits.substr(48)), std::string::npos);
  }
}

}  // namespace
}  // namespace rnicd::test
