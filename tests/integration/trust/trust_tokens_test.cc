// Properties 5, 6 and 7: a token gives no access to another tenant, does not reveal the next token, and becomes invalid
// with its object.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "absl/strings/escaping.h"
#include "base/hex.h"
#include "tests/integration/trust_fixture.h"
#include "tests/support/process/child_client.h"

namespace rnicd::test {
namespace {

constexpr char kSecretText[] = "of the victim";
constexpr size_t kTextBytes = sizeof(kSecretText) - 1;

// --- 5: tenants are walls ---

// A client of another user, whose first page any peer on its own queue pairs could read and write.
struct Victim {
  explicit Victim(DaemonProcess& daemon) : client(ChildClient::Start(daemon, OtherUid())) {
    if (client == nullptr) {
      return;
    }
    client->MustRun("open victim");
    memory_id = client->MustRun("alloc 4096").number("memory");
    client->MustRun("poke 0 " + absl::BytesToHexString(kSecretText));
    const ChildAnswer registered =
        client->MustRun("register " + std::to_string(memory_id) + " 4096 " + std::to_string(kEveryMrRight));
    mr_id = registered.number("mr");
    local = static_cast<uint32_t>(registered.number("local"));
    remote = static_cast<uint32_t>(registered.number("remote"));
    base = registered.number("base");
  }
  std::string Text() const {
    return BytesFromHex(client->MustRun("peek 0 " + std::to_string(kTextBytes)).values["bytes"]).value();
  }

  std::unique_ptr<ChildClient> client;
  uint64_t memory_id = 0;
  uint64_t mr_id = 0;
  uint32_t local = 0;
  uint32_t remote = 0;
  uint64_t base = 0;
};

TEST_F(Trust, Property05TokenOfAnotherTenantFailsOnOurQueuePairs) {
  Victim victim(daemon());
  ASSERT_NE(victim.client, nullptr);
  // Two colluding sessions that are peers.
  ConnectedPair pair(daemon());
  SharedPage sink(pair.near_session, "before");
  for (const uint32_t token : {victim.remote, victim.local}) {
    for (const bool is_read : {true, false}) {
      TestQueue near(pair.near_session);
      TestQueue far(pair.far_session);
      ConnectPair(near, far);
      const v1::WorkRequest request = is_read ? ReadRequest({sink.FirstBytes(kTextBytes)}, victim.base, token)
                                              : InlineWriteRequest("ours", victim.base, token);
      EXPECT_EQ(near.Run(request).result().ntstatus(), kAccessViolation) << token << (is_read ? " read" : " write");
    }
  }
  EXPECT_EQ(sink.memory.Text(0, 6), "before");
  EXPECT_EQ(victim.Text(), kSecretText);
}

TEST_F(Trust, Property05TokenOfAnotherTenantIsNoSourceOfOurSends) {
  Victim victim(daemon());
  ASSERT_NE(victim.client, nullptr);
  ConnectedPair pair(daemon());
  SharedPage target(pair.far_session, "before");
  for (const uint32_t token : {victim.local, victim.remote}) {
    TestQueue near(pair.near_session);
    TestQueue far(pair.far_session);
    ConnectPair(near, far);
    const auto posted =
        near.Post({WriteRequest({Sge(victim.base, kTextBytes, token)}, kBase, target.registration.remote_token())});
    ExpectOk(posted);
    if (posted.response.posted() == 1) {
      EXPECT_NE(near.NextInitiator().result().ntstatus(), kStatusSuccess) << token;
    }
  }
  EXPECT_EQ(target.memory.Text(0, 6), "before");
}

TEST_F(Trust, Property05IdsOfAnotherTenantDoNotExist) {
  Victim victim(daemon());
  ASSERT_NE(victim.client, nullptr);
  TestSession ours(daemon());
  ExpectRefused(ours.LocalToken(victim.mr_id), ErrorReason::OBJECT_NOT_FOUND, "mr_id");
  ExpectRefused(ours.RemoteToken(victim.mr_id), ErrorReason::OBJECT_NOT_FOUND, "mr_id");
  ExpectRefused(ours.Deregister(victim.mr_id), ErrorReason::OBJECT_NOT_FOUND, "mr_id");
  ExpectRefused(ours.CloseMr(victim.mr_id), ErrorReason::OBJECT_NOT_FOUND, "mr_id");
  ExpectRefused(ours.Release(victim.memory_id), ErrorReason::OBJECT_NOT_FOUND, "memory_id");
  const auto chain = {MdlEntry(victim.memory_id, 0, kPage, kBase)};
  ExpectRefused(ours.Register(RegisterRequest(ours.CreateMr(), chain, kPage)), ErrorReason::OBJECT_NOT_FOUND,
                "mdl_chain[0].memory_id");
  const ChildAnswer tokens = victim.client->MustRun("tokens " + std::to_string(victim.mr_id));
  EXPECT_EQ(tokens.number("remote"), victim.remote);
}

// --- 6: tokens cannot be foretold ---
//
// Each token should be, whatever was seen before, one of at least (2^24 - 2^17 - 1) * 2^7 equally likely ones: 24 bits
// of index without 0, 2^16 reserved ones and at most 2^16 that live, and 7 bits of variant. The bounds below follow
// from that by Chernoff's inequality, and each is broken by chance in fewer than one of 10^9 runs.

constexpr size_t kSessions = 64;
constexpr size_t kRegionsOfASession = 1024;
constexpr int kHighBits = 8;
constexpr int kVariantBits = 7;

// Registers one page `count` times in one call. Returns the remote tokens in order of issue.
std::vector<uint32_t> TokensOf(TestSession& session, size_t count) {
  const uint64_t memory_id = session.SealedMemory(kPage);
  v1::BatchCreateMrRequest create;
  for (size_t index = 0; index < count; ++index) {
    create.add_items()->set_pd_id(session.pd_id());
  }
  const auto created = session.Call(&MemoryStub::BatchCreateMr, create);
  v1::BatchRegisterMrRequest request;
  for (const v1::CreateMrOutcome& outcome : created.response.outcomes()) {
    *request.add_items() = RegisterRequest(outcome.response().mr_id(), {MdlEntry(memory_id, 0, kPage, kBase)}, kPage);
  }
  const auto registered = session.Call(&MemoryStub::BatchRegisterMr, request);
  std::vector<uint32_t> tokens;
  for (const v1::RegisterMrOutcome& outcome : registered.response.outcomes()) {
    tokens.push_back(outcome.response().registration().remote_token());
  }
  EXPECT_EQ(tokens.size(), count) << registered.message;
  return tokens;
}

std::vector<uint32_t> Differences(const std::vector<uint32_t>& from, const std::vector<uint32_t>& to) {
  std::vector<uint32_t> differences;
  for (size_t index = 0; index < std::min(from.size(), to.size()); ++index) {
    differences.push_back(to[index] - from[index]);
  }
  return differences;
}

// The differences between consecutive values.
std::vector<uint32_t> Steps(const std::vector<uint32_t>& values) {
  return Differences(values, std::vector<uint32_t>(values.begin() + 1, values.end()));
}

// Number of occurrences of each value of these bits.
std::map<uint32_t, size_t> Count(const std::vector<uint32_t>& values, int shift, int bits) {
  std::map<uint32_t, size_t> counts;
  for (const uint32_t value : values) {
    ++counts[value >> shift & ((uint64_t{1} << bits) - 1)];
  }
  return counts;
}

size_t MostOften(const std::map<uint32_t, size_t>& counts) {
  return std::ranges::max_element(counts, {}, [](const auto& entry) { return entry.second; })->second;
}

// Observed min-entropy in bits: minus the base-2 logarithm of the most frequent value's share.
double MinEntropy(const std::vector<uint32_t>& values, int shift, int bits) {
  return std::log2(static_cast<double>(values.size()) / static_cast<double>(MostOften(Count(values, shift, bits))));
}

// All tokens that are valid in a daemon at one time, in order of issue.
class LivingTokens {
 public:
  explicit LivingTokens(DaemonProcess& daemon) {
    for (size_t index = 0; index < kSessions; ++index) {
      sessions_.push_back(std::make_unique<TestSession>(daemon));
      of_sessions_.push_back(TokensOf(*sessions_.back(), kRegionsOfASession));
      all_.insert(all_.end(), of_sessions_.back().begin(), of_sessions_.back().end());
    }
  }

  const std::vector<std::vector<uint32_t>>& of_sessions() const { return of_sessions_; }
  const std::vector<uint32_t>& all() const { return all_; }

 private:
  std::vector<std::unique_ptr<TestSession>> sessions_;
  std::vector<std::vector<uint32_t>> of_sessions_;
  std::vector<uint32_t> all_;
};

// One daemon for all checks of its 65,536 tokens, because creating them is expensive.
TEST_F(Trust, Property06TokensOfManySessionsCannotBeForetold) {
  const LivingTokens tokens(daemon());
  ASSERT_EQ(tokens.all().size(), kSessions * kRegionsOfASession);
  EXPECT_EQ(std::set<uint32_t>(tokens.all().begin(), tokens.all().end()).size(), tokens.all().size())
      << "a token lives twice";

  // 256 values that come 258 times each at most, on average: one that comes twice as often has a chance of 10^-40. A
  // card that counts its keys up has 0 bits here.
  const std::vector<uint32_t> steps = Steps(tokens.all());
  EXPECT_GE(MinEntropy(steps, 32 - kHighBits, kHighBits), kHighBits - 1);
  // The same step five times among 65,535 has a chance of 10^-15.
  EXPECT_LT(MostOften(Count(steps, 0, 32)), 5u);

  // From each token to the one at the same index of the next session.
  std::vector<uint32_t> across;
  for (size_t index = 1; index < kSessions; ++index) {
    const auto differences = Differences(tokens.of_sessions()[index - 1], tokens.of_sessions()[index]);
    across.insert(across.end(), differences.begin(), differences.end());
  }
  EXPECT_GE(MinEntropy(across, 32 - kHighBits, kHighBits), kHighBits - 1);
  EXPECT_LT(MostOften(Count(across, 0, 32)), 5u);

  // The low byte: 128 values, 512 times each on average. Half as many again, or half, has a chance of 10^-22.
  const std::map<uint32_t, size_t> variants = Count(tokens.all(), 0, 8);
  EXPECT_EQ(variants.size(), size_t{1} << kVariantBits);
  EXPECT_LE(MostOften(variants), 768u);
  EXPECT_GE(std::ranges::min_element(variants, {}, [](const auto& entry) { return entry.second; })->second, 256u);
}

// The chance that two of 1,024 indices have the same token before and after a restart is 10^-13; the chance that one of
// 16 values, expected 64 times each, comes twice as often is 10^-10.
TEST_F(Trust, Property06TokensOfARestartedDaemonCannotBeForetold) {
  std::array<std::vector<uint32_t>, 2> lives;
  for (std::vector<uint32_t>& tokens : lives) {
    auto daemon = DaemonProcess::Start();
    ASSERT_TRUE(daemon.ok()) << daemon.status();
    {
      TestSession session(**daemon);
      tokens = TokensOf(session, kRegionsOfASession);
    }
    const absl::Status stopped = (*daemon)->Stop();
    EXPECT_TRUE(stopped.ok()) << stopped;
  }
  const std::vector<uint32_t> differences = Differences(lives[0], lives[1]);
  ASSERT_EQ(differences.size(), kRegionsOfASession);
  EXPECT_LE(std::ranges::count(differences, 0u), 1);
  EXPECT_LE(MostOften(Count(differences, 28, 4)), 128u);
}

// --- 7: stale tokens ---

// Uses two new queue pairs of the sessions: a refused token fails its queue pair.
uint32_t ReadByNewQueues(TestSession& near_session, TestSession& far_session, const SharedPage& sink, uint32_t token) {
  TestQueue near(near_session);
  TestQueue far(far_session);
  ConnectPair(near, far);
  return ReadFrom(near, sink, kBase, token, kTextBytes);
}

TEST_F(Trust, Property07TokenIsDeadAfterDeregistration) {
  ConnectedPair pair(daemon());
  SharedPage sink(pair.near_session, "before");
  SharedPage page(pair.far_session, kSecretText);
  const uint32_t stale = page.registration.remote_token();
  ExpectOk(pair.far_session.Deregister(page.mr_id));
  // The same region with the same pages at the same address.
  const uint32_t fresh =
      pair.far_session.RegisterWhole(page.mr_id, page.memory.id(), kPage, kEveryMrRight).remote_token();
  EXPECT_NE(fresh, stale);
  EXPECT_EQ(ReadFrom(pair.near, sink, kBase, stale, kTextBytes), kAccessViolation);
  EXPECT_EQ(sink.memory.Text(0, 6), "before");
  EXPECT_EQ(ReadByNewQueues(pair.near_session, pair.far_session, sink, fresh), kStatusSuccess);
  EXPECT_EQ(sink.memory.Text(0, kTextBytes), kSecretText);
}

TEST_F(Trust, Property07TokenIsDeadAfterItsSession) {
  TestSession near(daemon(), "near");
  SharedPage sink(near, "before");
  uint32_t stale = 0;
  {
    TestSession far(daemon(), "far");
    SharedPage page(far, kSecretText);
    stale = page.registration.remote_token();
    EXPECT_EQ(ReadByNewQueues(near, far, sink, stale), kStatusSuccess);
    ExpectOk(far.CloseSession());
  }
  sink.memory.SetText(0, "before");
  // The same process, with the same address.
  TestSession next(daemon(), "next");
  SharedPage page(next, kSecretText);
  EXPECT_EQ(ReadByNewQueues(near, next, sink, stale), kAccessViolation);
  EXPECT_EQ(sink.memory.Text(0, 6), "before");
}

// Opens a session of the grant's tenant on the connection of `session`, whose own session ends.
CallOutcome PresentGrant(TestSession& session, const std::string& secret) {
  ExpectOk(session.CloseSession());
  v1::OpenSessionRequest request;
  request.set_grant(secret);
  return session.Call(&SessionStub::OpenSession, request);
}

// A restarted daemon accepts nothing that the previous one issued, from any client.
TEST_F(Trust, Property07NothingGivenOutOutlivesTheDaemon) {
  auto first = DaemonProcess::Start();
  ASSERT_TRUE(first.ok()) << first.status();
  const std::shared_ptr<TempDir> directory = (*first)->directory();
  uint32_t stale = 0;
  uint64_t session_id = 0;
  uint64_t mr_id = 0;
  std::string ticket;
  std::string secret;
  {
    TestSession session(**first);
    SharedPage page(session, kSecretText);
    stale = page.registration.remote_token();
    mr_id = page.mr_id;
    session_id = session.session_id();
    ticket = session.Allocate(kPage).fd_ticket();
    v1::CreateGrantRequest grant;
    grant.set_name("of-the-first");
    secret = CreateGrant(**first, grant).response.secret();
    EXPECT_FALSE(secret.empty());
    (*first)->KillHard();
  }
  auto second = DaemonProcess::Start({.directory = directory});
  ASSERT_TRUE(second.ok()) << second.status();
  {
    RawClient client((*second)->rpc_socket());
    ExpectRefused(Join(client, session_id), ErrorReason::SESSION_NOT_FOUND, "session_id");
    ExpectFdRefused(FetchFd((*second)->fd_socket(), ticket), ErrorReason::TICKET_UNKNOWN);
    TestSession near(**second, "near");
    TestSession far(**second, "far");
    ExpectRefused(near.RemoteToken(mr_id), ErrorReason::OBJECT_NOT_FOUND, "mr_id");
    SharedPage sink(near, "before");
    SharedPage page(far, kSecretText);
    EXPECT_EQ(ReadByNewQueues(near, far, sink, stale), kAccessViolation);
    EXPECT_EQ(sink.memory.Text(0, 6), "before");
    ExpectRefused(PresentGrant(far, secret), ErrorReason::GRANT_REFUSED, "grant");
  }
  const absl::Status stopped = (*second)->Stop();
  EXPECT_TRUE(stopped.ok()) << stopped;
}

}  // namespace
}  // namespace rnicd::test
