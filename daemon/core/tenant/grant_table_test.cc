#include "daemon/core/tenant/grant_table.h"

#include <algorithm>
#include <set>
#include <thread>

#include "daemon/core/session/core_fixture_test.h"

namespace rnicd::core {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

constexpr size_t kDigits = 16;
const std::string kPrefix = "rnicd-grant-";

Caller InPod(const std::string& pod_uid) {
  Caller caller = CallerNumbered(1);
  caller.container.pod_uid = pod_uid;
  return caller;
}

class GrantTableTest : public ::testing::Test {
 protected:
  GrantTable::MakeTenant Maker(const std::string& name) {
    return [this, name](GrantId id) {
      return std::make_shared<Tenant>("grant/" + name, "", id, 1, TenantLimits{}, node_, clock_);
    };
  }
  absl::StatusOr<IssuedGrant> Create(const GrantTerms& terms) { return table_.Create(terms, Maker(terms.name)); }
  IssuedGrant MustCreate(const GrantTerms& terms) {
    auto issued = Create(terms);
    EXPECT_TRUE(issued.ok()) << issued.status();
    return issued.value_or(IssuedGrant{});
  }
  absl::Status Present(const std::string& secret, const Caller& caller = CallerNumbered(1)) const {
    return table_.Present(secret, caller).status();
  }

  KernelRandom random_;
  ManualClock clock_;
  std::shared_ptr<Ledger> node_ = std::make_shared<Ledger>(Limits{}, nullptr);
  GrantTable table_{random_, clock_};
};

// A secret of the right form for the grant.
std::string NewestSecretFor(GrantId id) {
  char digits[kDigits + 1];
  std::snprintf(digits, sizeof(digits), "%016llx", static_cast<unsigned long long>(id.value));
  return kPrefix + digits + "-" + std::string(4 * kDigits, '0');
}

const auto kRefused = [] { return FailsAt(ErrorReason::GRANT_REFUSED, "grant"); };

TEST_F(GrantTableTest, ASecretIsTheGrantsIdAnd256RandomBits) {
  const IssuedGrant issued = MustCreate({.name = "a"});
  ASSERT_EQ(issued.secret.size(), kPrefix.size() + kDigits + 1 + 4 * kDigits);
  EXPECT_TRUE(issued.secret.starts_with(kPrefix));
  const std::string id = issued.secret.substr(kPrefix.size(), kDigits);
  EXPECT_EQ(std::stoull(id, nullptr, 16), issued.id.value);
  EXPECT_EQ(issued.secret[kPrefix.size() + kDigits], '-');
  const std::string bits = issued.secret.substr(kPrefix.size() + kDigits + 1);
  EXPECT_TRUE(std::all_of(bits.begin(), bits.end(), [](char c) { return std::isxdigit(c) && !std::isupper(c); })) << id;
}

TEST_F(GrantTableTest, NoTwoGrantsShareAnIdOrAnyPartOfASecret) {
  std::set<uint64_t> ids;
  std::set<std::string> words;
  constexpr int kGrants = 200;
  for (int number = 0; number < kGrants; ++number) {
    const IssuedGrant issued = MustCreate({.name = std::to_string(number)});
    ids.insert(issued.id.value);
    for (size_t word = 0; word < 4; ++word) {
      words.insert(issued.secret.substr(kPrefix.size() + kDigits + 1 + word * kDigits, kDigits));
    }
  }
  EXPECT_EQ(ids.size(), size_t{kGrants});
  EXPECT_EQ(words.size(), size_t{4} * kGrants);
}

TEST_F(GrantTableTest, TheBearerOfTheSecretIsTheGrantsTenant) {
  const IssuedGrant first = MustCreate({.name = "first"});
  const IssuedGrant second = MustCreate({.name = "second"});
  const auto tenant = table_.Present(first.secret, CallerNumbered(1, 1000));
  ASSERT_TRUE(tenant.ok());
  EXPECT_EQ((*tenant)->name(), "grant/first");
  EXPECT_EQ((*tenant)->grant(), first.id);
  EXPECT_EQ(table_.Present(first.secret, CallerNumbered(2, 2000)).value(), *tenant) << "and so is the next one";
  EXPECT_EQ(table_.Present(second.secret, CallerNumbered(1)).value()->name(), "grant/second");
}

TEST_F(GrantTableTest, AWrongSecretOfTheRightIdIsRefused) {
  const IssuedGrant issued = MustCreate({.name = "a"});
  for (size_t place = 0; place < issued.secret.size(); ++place) {
    std::string wrong = issued.secret;
    wrong[place] = wrong[place] == '0' ? '1' : '0';
    EXPECT_THAT(Present(wrong), kRefused()) << "character " << place;
  }
  for (size_t length = 0; length < issued.secret.size(); ++length) {
    EXPECT_THAT(Present(issued.secret.substr(0, length)), kRefused()) << length << " characters";
  }
  for (const std::string& more :
       {std::string("0"), std::string(1, '\0'), std::string(" "), std::string(1 << 20, 'f')}) {
    EXPECT_THAT(Present(issued.secret + more), kRefused());
  }
  std::string upper = issued.secret;
  std::transform(upper.begin() + static_cast<std::ptrdiff_t>(kPrefix.size()), upper.end(),
                 upper.begin() + static_cast<std::ptrdiff_t>(kPrefix.size()),
                 [](char c) { return static_cast<char>(std::toupper(c)); });
  ASSERT_NE(upper, issued.secret);
  EXPECT_THAT(Present(upper), kRefused());
  EXPECT_TRUE(Present(issued.secret).ok()) << "none of it has changed the grant";
}

TEST_F(GrantTableTest, TheBitsOfAnotherGrantAreWrong) {
  const IssuedGrant first = MustCreate({.name = "first"});
  const IssuedGrant second = MustCreate({.name = "second"});
  const size_t bits = kPrefix.size() + kDigits;
  EXPECT_THAT(Present(first.secret.substr(0, bits) + second.secret.substr(bits)), kRefused());
}

TEST_F(GrantTableTest, WhatIsNoSecretIsRefused) {
  MustCreate({.name = "a"});
  for (const std::string& text : {std::string("x"), kPrefix, kPrefix + std::string(kDigits, '0'),
                                  kPrefix + "-" + std::string(kDigits, '1'), kPrefix + "0x" + std::string(kDigits, '1'),
                                  kPrefix + std::string(1000, 'f'), std::string(1000, '\0'), std::string("\xff\xfe")}) {
    EXPECT_THAT(Present(text), kRefused()) << text;
  }
}

TEST_F(GrantTableTest, AGrantForAPodIsForNobodyElse) {
  const IssuedGrant bound = MustCreate({.name = "bound", .pod_uid = kPod});
  const IssuedGrant open = MustCreate({.name = "open"});
  std::string other_pod = kPod;
  other_pod.back() = 'c';
  EXPECT_TRUE(Present(bound.secret, InPod(kPod)).ok());
  EXPECT_THAT(Present(bound.secret, InPod(other_pod)), kRefused());
  EXPECT_THAT(Present(bound.secret, InPod("")), kRefused());
  Caller container = InPod("");
  container.container.id = kPod;
  EXPECT_THAT(Present(bound.secret, container), kRefused()) << "a container's id is no pod";
  for (const Caller& caller : {InPod(kPod), InPod(other_pod), InPod("")}) {
    EXPECT_TRUE(Present(open.secret, caller).ok());
  }
}

TEST_F(GrantTableTest, AGrantThatIsBoundLaterIsForNobodyElseFromThenOn) {
  const IssuedGrant issued = MustCreate({.name = "a"});
  const auto tenant = table_.Present(issued.secret, InPod(""));
  EXPECT_EQ(table_.Bind(issued.id, kPod).value(), *tenant);
  EXPECT_EQ(table_.List().front().tenant->pod_uid(), kPod);
  EXPECT_EQ(table_.Present(issued.secret, InPod(kPod)).value(), *tenant);
  EXPECT_THAT(Present(issued.secret, InPod("")), kRefused());
  EXPECT_THAT(Present(issued.secret, InPod("0d9e1b5c-90a4-4a3c-8f0e-6d7d5b3f2c11")), kRefused());
  EXPECT_FALSE((*tenant)->closed());
}

TEST_F(GrantTableTest, AGrantStaysBoundToItsFirstPod) {
  const std::string other = "0d9e1b5c-90a4-4a3c-8f0e-6d7d5b3f2c11";
  const IssuedGrant issued = MustCreate({.name = "a"});
  EXPECT_EQ(table_.Bind(issued.id, "").value()->pod_uid(), "");
  EXPECT_EQ(table_.Bind(issued.id, kPod).value()->pod_uid(), kPod);
  EXPECT_EQ(table_.Bind(issued.id, other).value()->pod_uid(), kPod);
  EXPECT_EQ(table_.Bind(issued.id, "").value()->pod_uid(), kPod);
  EXPECT_TRUE(Present(issued.secret, InPod(kPod)).ok());
  EXPECT_THAT(Present(issued.secret, InPod(other)), kRefused());
  EXPECT_TRUE(table_.Revoke(issued.id).ok());
  EXPECT_THAT(table_.Bind(issued.id, kPod).status(), FailsAt(ErrorReason::GRANT_NOT_FOUND, "grant_id"));
}

TEST_F(GrantTableTest, AGrantIsOverWhenItsTimeIsOver) {
  const IssuedGrant issued = MustCreate({.name = "short", .lifetime = milliseconds(1000)});
  const auto tenant = table_.Present(issued.secret, CallerNumbered(1));
  clock_.Advance(milliseconds(999));
  EXPECT_TRUE(Present(issued.secret).ok());
  EXPECT_TRUE(table_.TakeExpired().empty());
  clock_.Advance(milliseconds(1));
  EXPECT_THAT(Present(issued.secret), kRefused()) << "whether or not TakeExpired has run";
  const auto expired = table_.TakeExpired();
  ASSERT_EQ(expired.size(), 1u);
  EXPECT_EQ(expired.front(), *tenant);
  EXPECT_TRUE((*tenant)->closed());
  EXPECT_TRUE(table_.TakeExpired().empty()) << "a grant is over once";
  EXPECT_TRUE(table_.List().empty());
  EXPECT_THAT(table_.Revoke(issued.id).status(), FailsWith(ErrorReason::GRANT_NOT_FOUND));
}

TEST_F(GrantTableTest, OnlyThoseThatAreOverAreTaken) {
  MustCreate({.name = "second", .lifetime = milliseconds(1000)});
  MustCreate({.name = "hour", .lifetime = hours(1)});
  const IssuedGrant endless = MustCreate({.name = "endless"});
  clock_.Advance(milliseconds(1500));
  EXPECT_EQ(table_.TakeExpired().size(), 1u);
  EXPECT_EQ(table_.List().size(), 2u);
  clock_.Advance(hours(24 * 365 * 100));
  ASSERT_EQ(table_.TakeExpired().size(), 1u);
  EXPECT_TRUE(Present(endless.secret).ok()) << "without a lifetime only a revocation ends it";
}

TEST_F(GrantTableTest, ARevokedGrantIsWorthlessAndItsTenantClosed) {
  const IssuedGrant issued = MustCreate({.name = "a"});
  const IssuedGrant other = MustCreate({.name = "b"});
  const auto tenant = table_.Present(issued.secret, CallerNumbered(1));
  EXPECT_FALSE((*tenant)->closed());
  EXPECT_EQ(table_.Revoke(issued.id).value(), *tenant);
  EXPECT_TRUE((*tenant)->closed());
  EXPECT_THAT(Present(issued.secret), kRefused());
  EXPECT_THAT(table_.Revoke(issued.id).status(), FailsAt(ErrorReason::GRANT_NOT_FOUND, "grant_id"));
  EXPECT_THAT(table_.Revoke(GrantId{}).status(), FailsWith(ErrorReason::GRANT_NOT_FOUND));
  EXPECT_TRUE(Present(other.secret).ok());
}

TEST_F(GrantTableTest, TenantOfAGrantThatHasEndedStaysWhileItIsCharged) {
  IssuedGrant revoked = MustCreate({.name = "revoked"});
  IssuedGrant expired = MustCreate({.name = "expired", .lifetime = milliseconds(1)});
  IssuedGrant unused = MustCreate({.name = "unused"});
  const auto charge_for = [this](const IssuedGrant& grant) {
    const auto tenant = table_.Present(grant.secret, CallerNumbered(1)).value();
    return Charge::Take(tenant->ledger(), Resource::kMemoryBytes, kPage).value();
  };
  std::vector<Charge> charges;
  charges.push_back(charge_for(revoked));
  charges.push_back(charge_for(expired));
  EXPECT_TRUE(table_.Revoke(revoked.id).ok());
  EXPECT_TRUE(table_.Revoke(unused.id).ok());
  clock_.Advance(milliseconds(1));
  EXPECT_EQ(table_.TakeExpired().size(), 1u);
  EXPECT_EQ(table_.Tenants().size(), 2u);
  charges.pop_back();
  ASSERT_EQ(table_.Tenants().size(), 1u);
  EXPECT_EQ(table_.Tenants().front()->name(), "grant/revoked");
  charges.clear();
  EXPECT_TRUE(table_.Tenants().empty());
  const std::weak_ptr<Ledger> node = node_;
  node_.reset();
  for (IssuedGrant* const issued : {&revoked, &expired, &unused}) {
    issued->tenant.reset();
  }
  (void)table_.TakeExpired();
  EXPECT_TRUE(node.expired()) << "a tenant is kept for ever";
}

Caller Through(const IssuedGrant& grant, Caller caller = CallerNumbered(1)) {
  caller.door = grant.tenant;
  return caller;
}

TEST_F(GrantTableTest, WhoComesThroughADoorNeedsNoSecret) {
  const IssuedGrant issued = MustCreate({.name = "a", .door = true});
  EXPECT_EQ(issued.secret, "");
  EXPECT_EQ(*table_.Enter(Through(issued)), issued.tenant);
  EXPECT_TRUE(issued.tenant->door().exists());
  EXPECT_THAT(Present(NewestSecretFor(issued.id)), kRefused()) << "it has none";
}

TEST_F(GrantTableTest, ADoorOfAPodIsForNobodyElse) {
  const IssuedGrant issued = MustCreate({.name = "a", .pod_uid = "p", .door = true});
  EXPECT_TRUE(table_.Enter(Through(issued, InPod("p"))).ok());
  EXPECT_THAT(table_.Enter(Through(issued, InPod("q"))).status(), FailsAt(ErrorReason::GRANT_REFUSED, ""));
  EXPECT_THAT(table_.Enter(Through(issued)).status(), FailsAt(ErrorReason::GRANT_REFUSED, ""));
}

TEST_F(GrantTableTest, NobodyEntersByADoorWhoseGrantIsOver) {
  const IssuedGrant expired = MustCreate({.name = "expired", .lifetime = milliseconds(1), .door = true});
  const IssuedGrant revoked = MustCreate({.name = "revoked", .door = true});
  clock_.Advance(milliseconds(1));
  EXPECT_THAT(table_.Enter(Through(expired)).status(), FailsAt(ErrorReason::GRANT_REFUSED, ""));
  EXPECT_TRUE(table_.Revoke(revoked.id).ok());
  EXPECT_THAT(table_.Enter(Through(revoked)).status(), FailsAt(ErrorReason::GRANT_REFUSED, ""));
  MustCreate({.name = "revoked", .renewal = GrantRenewal{.id = revoked.id}, .door = true});
  EXPECT_THAT(table_.Enter(Through(revoked)).status(), FailsAt(ErrorReason::GRANT_REFUSED, "")) << "it came before";
}

TEST_F(GrantTableTest, ANameIsTakenUntilItsGrantIsGone) {
  const IssuedGrant first = MustCreate({.name = "a"});
  EXPECT_THAT(Create({.name = "a"}).status(), FailsAt(ErrorReason::GRANT_NAME_TAKEN, "name"));
  EXPECT_EQ(table_.List().size(), 1u);
  EXPECT_TRUE(Create({.name = "A"}).ok());
  const auto old_tenant = table_.Revoke(first.id);
  const IssuedGrant second = MustCreate({.name = "a", .lifetime = milliseconds(1)});
  EXPECT_NE(table_.Present(second.secret, CallerNumbered(1)).value(), *old_tenant);
  EXPECT_THAT(Present(first.secret), kRefused());
  clock_.Advance(milliseconds(1));
  (void)table_.TakeExpired();
  EXPECT_TRUE(Create({.name = "a"}).ok());
}

TEST_F(GrantTableTest, ANameHasOneTo63SafeCharacters) {
  EXPECT_TRUE(Create({.name = "x"}).ok());
  EXPECT_TRUE(Create({.name = std::string(kMaxGrantNameBytes, 'x')}).ok());
  EXPECT_TRUE(Create({.name = "AZaz09-_./"}).ok());
  for (const std::string& name :
       {std::string(), std::string(kMaxGrantNameBytes + 1, 'x'), std::string("a b"), std::string("a\nb"),
        std::string("a\0b", 3), std::string("a\"b"), std::string("a=b"), std::string("\xc3\xa9"), std::string("a:b"),
        std::string("a@b"), std::string("a[b")}) {
    EXPECT_THAT(Create({.name = name}).status(), FailsAt(ErrorReason::FIELD_OUT_OF_RANGE, "name")) << name;
  }
  EXPECT_EQ(table_.List().size(), 3u);
}

TEST_F(GrantTableTest, ThereAreNoMoreThanTheMostAndEachThatGoesMakesRoom) {
  IssuedGrant last;
  for (size_t number = 0; number < kMaxGrants; ++number) {
    last = MustCreate({.name = std::to_string(number)});
  }
  const absl::Status refused = Create({.name = "more"}).status();
  EXPECT_THAT(refused, FailsWith(ErrorReason::QUOTA_GRANTS));
  EXPECT_EQ(ErrorInfoOf(refused).limit, kMaxGrants);
  EXPECT_EQ(ErrorInfoOf(refused).used, kMaxGrants);
  EXPECT_EQ(ErrorInfoOf(refused).requested, 1u);
  EXPECT_EQ(table_.List().size(), kMaxGrants);
  EXPECT_TRUE(table_.Revoke(last.id).ok());
  EXPECT_TRUE(Create({.name = "more"}).ok());
}

TEST_F(GrantTableTest, TheListSaysWhatIsThereAndNoSecret) {
  std::vector<std::string> secrets;
  for (const char* name : {"a", "b", "c"}) {
    secrets.push_back(MustCreate({.name = name, .pod_uid = kPod, .lifetime = hours(1)}).secret);
    clock_.Advance(milliseconds(5));
  }
  const std::vector<GrantView> views = table_.List();
  ASSERT_EQ(views.size(), 3u);
  EXPECT_TRUE(std::is_sorted(views.begin(), views.end(), [](const auto& a, const auto& b) { return a.id < b.id; }));
  for (const GrantView& view : views) {
    EXPECT_EQ(view.tenant->pod_uid(), kPod);
    EXPECT_EQ(view.expiry, view.created + hours(1));
    EXPECT_EQ(view.tenant->grant(), view.id);
    for (const std::string& secret : secrets) {
      const std::string bits = secret.substr(kPrefix.size() + kDigits + 1);
      EXPECT_EQ((view.tenant->pod_uid() + view.tenant->name() + view.tenant->rule()).find(bits), std::string::npos);
    }
  }
}

TEST_F(GrantTableTest, OfRacingGrantsOfOneNameOneIsMade) {
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> made{0};
    std::vector<std::thread> threads;
    for (int index = 0; index < 8; ++index) {
      threads.emplace_back([&, round] { made += Create({.name = std::to_string(round)}).ok() ? 1 : 0; });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    EXPECT_EQ(made, 1);
  }
  EXPECT_EQ(table_.List().size(), 20u);
}

TEST_F(GrantTableTest, NobodyIsLetInAfterTheRevocation) {
  for (int round = 0; round < 20; ++round) {
    const IssuedGrant issued = MustCreate({.name = "a"});
    std::atomic<bool> revoked{false};
    std::atomic<int> let_in_late{0};
    std::atomic<int> presented{0};
    std::vector<std::thread> threads;
    for (int index = 0; index < 8; ++index) {
      threads.emplace_back([&] {
        for (int attempt = 0; attempt < 50; ++attempt) {
          const bool late = revoked.load();
          const bool let_in = table_.Present(issued.secret, CallerNumbered(1)).ok();
          let_in_late += late && let_in ? 1 : 0;
          ++presented;
        }
      });
    }
    while (presented < 20) {
      std::this_thread::yield();
    }
    EXPECT_TRUE(table_.Revoke(issued.id).ok());
    revoked = true;
    for (std::thread& thread : threads) {
      thread.join();
    }
    EXPECT_EQ(let_in_late, 0);
  }
}

}  // namespace
}  // namespace rnicd::core
