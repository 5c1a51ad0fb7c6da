// Grants issued by an earlier daemon, and the devices of all grants.
#include "daemon/core/session/core_fixture_test.h"
#include "daemon/core/tenant/grant_table.h"

namespace rnicd::core {
namespace {

class GrantRenewalTest : public ::testing::Test {
 protected:
  absl::StatusOr<IssuedGrant> Create(const GrantTerms& terms, GrantTable& table) {
    return table.Create(terms, [&](GrantId id) {
      return std::make_shared<Tenant>("grant/" + terms.name, "", id, 1, TenantLimits{}, node_, clock_);
    });
  }
  // The terms with which the next daemon is asked to renew the grant.
  static GrantTerms RenewalTerms(const std::string& name, const IssuedGrant& issued) {
    return {.name = name, .renewal = GrantRenewal{.id = issued.id, .digest = SecretDigest::Of(issued.secret)}};
  }
  static GrantTerms WithDevices(const std::string& name, size_t count) {
    auto devices = std::make_shared<DeviceSet>();
    devices->resource = "rnicd.io/memory-64mi";
    for (size_t index = 0; index < count; ++index) {
      devices->ids.push_back("m-" + std::to_string(index));
    }
    return {.name = name, .devices = devices};
  }

  KernelRandom random_;
  ManualClock clock_;
  std::shared_ptr<Ledger> node_ = std::make_shared<Ledger>(Limits{}, nullptr);
  GrantTable earlier_{random_, clock_};
  GrantTable table_{random_, clock_};
};

TEST_F(GrantRenewalTest, ARenewedGrantHasItsIdAndItsSecretIsGoodAgain) {
  const IssuedGrant issued = Create({.name = "a"}, earlier_).value();
  EXPECT_THAT(table_.Present(issued.secret, CallerNumbered(1)).status(), FailsWith(ErrorReason::GRANT_REFUSED));
  const auto renewed = Create(RenewalTerms("a", issued), table_);
  ASSERT_TRUE(renewed.ok()) << renewed.status();
  EXPECT_EQ(renewed->id, issued.id);
  EXPECT_EQ(renewed->secret, "") << "this daemon does not have it";
  const auto tenant = table_.Present(issued.secret, CallerNumbered(1));
  ASSERT_TRUE(tenant.ok()) << tenant.status();
  EXPECT_EQ((*tenant)->name(), "grant/a");
  std::string wrong = issued.secret;
  wrong.back() = wrong.back() == '0' ? '1' : '0';
  EXPECT_THAT(table_.Present(wrong, CallerNumbered(1)).status(), FailsWith(ErrorReason::GRANT_REFUSED));
}

TEST_F(GrantRenewalTest, TheIdOfALivingGrantIsTaken) {
  const IssuedGrant living = Create({.name = "a"}, table_).value();
  EXPECT_THAT(Create(RenewalTerms("b", living), table_).status(),
              FailsAt(ErrorReason::GRANT_NAME_TAKEN, "renewal.grant_id"));
  EXPECT_THAT(Create(RenewalTerms("a", living), table_).status(), FailsAt(ErrorReason::GRANT_NAME_TAKEN, "name"));
  EXPECT_TRUE(Create({.name = "b"}, table_).ok()) << "a refusal takes no name";
  EXPECT_TRUE(table_.Present(living.secret, CallerNumbered(1)).ok()) << "and changes no grant";
  ASSERT_TRUE(table_.Revoke(living.id).ok());
  EXPECT_TRUE(Create(RenewalTerms("c", living), table_).ok()) << "a revoked grant does not count";
}

TEST_F(GrantRenewalTest, ARenewedGrantIsRevokedAndEndsAsAnyOther) {
  const IssuedGrant issued = Create({.name = "a"}, earlier_).value();
  GrantTerms terms = RenewalTerms("a", issued);
  terms.lifetime = std::chrono::seconds(1);
  ASSERT_TRUE(Create(terms, table_).ok());
  clock_.Advance(std::chrono::seconds(1));
  EXPECT_THAT(table_.Present(issued.secret, CallerNumbered(1)).status(), FailsWith(ErrorReason::GRANT_REFUSED));
  EXPECT_EQ(table_.TakeExpired().size(), 1u);
}

TEST_F(GrantRenewalTest, DevicesAreKeptWithTheGrant) {
  ASSERT_TRUE(Create(WithDevices("a", 2), table_).ok());
  ASSERT_TRUE(Create({.name = "b"}, table_).ok());
  for (const GrantView& view : table_.List()) {
    if (view.tenant->name() == "grant/a") {
      ASSERT_NE(view.devices, nullptr);
      EXPECT_EQ(view.devices->ids, (std::vector<std::string>{"m-0", "m-1"}));
    } else {
      EXPECT_EQ(view.devices, nullptr);
    }
  }
}

TEST_F(GrantRenewalTest, TheDevicesOfAllGrantsTogetherAreBounded) {
  const IssuedGrant half = Create(WithDevices("half", kMaxGrantDevices / 2), table_).value();
  const absl::Status refused = Create(WithDevices("more", kMaxGrantDevices / 2 + 1), table_).status();
  EXPECT_THAT(refused, FailsAt(ErrorReason::QUOTA_GRANTS, "devices"));
  EXPECT_EQ(ErrorInfoOf(refused).limit, kMaxGrantDevices);
  EXPECT_EQ(ErrorInfoOf(refused).used, kMaxGrantDevices / 2);
  const IssuedGrant rest = Create(WithDevices("rest", kMaxGrantDevices / 2), table_).value();
  EXPECT_THAT(Create(WithDevices("one", 1), table_).status(), FailsWith(ErrorReason::QUOTA_GRANTS));
  EXPECT_TRUE(Create({.name = "none"}, table_).ok());
  ASSERT_TRUE(table_.Revoke(half.id).ok());
  ASSERT_TRUE(table_.Revoke(rest.id).ok());
  EXPECT_TRUE(Create(WithDevices("all", kMaxGrantDevices), table_).ok()) << "they come back with their grants";
}

}  // namespace
}  // namespace rnicd::core
