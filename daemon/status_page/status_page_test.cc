#include "daemon/status_page/status_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "daemon/core/connection/connection_fixture_test.h"
#include "daemon/core/memory/memory_pool.h"

namespace rnicd::status_page {
namespace {

using core::Owner;
using core::World;
using Parsed = nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

// All keys that may be shown. Before adding one, check that any program on the machine may see its value.
const std::set<std::string> kAllowed = {
    "time_ms", "node", "older_generations", "history", "adapters", "tenants", "sessions", "regions", "ends", "failures",
    "rows", "more",
    // node
    "name", "version", "provider", "pid", "uptime_ms", "healthy", "draining", "policy_file", "policy_refused",
    "connections", "quotas", "resource", "used", "limit",
    // older generations
    "generation", "left_ms",
    // history
    "interval_ms", "pinned_bytes", "registered_bytes", "registrations", "calls",
    // adapters, tenants
    "remark", "rule", "by_grant", "door",
    // memory pool
    "memory_pool", "ready_bytes", "wanted_bytes", "hits", "misses",
    // sessions, regions
    "id", "tenant", "uid", "label", "pod", "age_ms", "ending", "session", "adapter", "kind", "state", "length", "pages",
    "page_bytes", "rights", "rings",
    // listeners and connectors
    "side", "local", "peer", "listener", "reported", "refused", "state_ms", "sent_bytes", "received_bytes",
    // failures
    "number", "first_ms", "last_ms", "count", "what", "reason", "sentence", "field", "note"};

void CollectKeys(const Parsed& json, std::set<std::string>* keys) {
  for (const auto& item : json.items()) {
    if (json.is_object()) {
      keys->insert(item.key());
    }
    if (item.value().is_structured()) {
      CollectKeys(item.value(), keys);
    }
  }
}

class StatusPageTest : public ::testing::Test {
 protected:
  Parsed Page() {
    text_ = Make().Json(WallTime(std::chrono::seconds(1'700'000'000)));
    return Parsed::parse(text_);
  }
  StatusPage Make() {
    return StatusPage(world_.node, world_.registry, failures_, history_,
                      {.node_name = "node-7",
                       .version = "1.2.3",
                       .policy_file = "/etc/policy",
                       .connections = [] { return uint64_t{5}; },
                       .adapters = [this] { return adapters_; },
                       .older_generations = [this] { return older_; }});
  }
  void Refuse() {
    failures_.Report(core::Decision{.what = "MemoryService.RegisterMr",
                                    .tenant = "storage",
                                    .status = MakeError(ErrorReason::QUOTA_PINNED_BYTES, "length")});
  }
  // A request that the server has not decided: its connector, and the client's.
  std::pair<ConnectorId, ConnectorId> Connect(core::ConnectionOwner& server, core::ConnectionOwner& client) {
    server.Listen("array");
    const ConnectorId active = client.NewConnector();
    client.StartConnect(client.To(server.listening_at, active, client.Pair()));
    return {server.WaitRequest(), active};
  }
  // Adds a session with `regions` regions, of which none is registered.
  void AddSession(uint64_t number, size_t regions) {
    Owner& owner = owners_.emplace_back(world_, number);
    const ProtectionDomainId domain = owner.Domain();
    for (size_t region = 0; region < regions; ++region) {
      owner.Region(domain);
    }
  }

  World world_;
  RecentFailures failures_;
  History history_;
  std::vector<AdapterState> adapters_ = {{.name = "soft0", .healthy = true, .remark = ""}};
  std::vector<core::OlderGeneration> older_;
  std::vector<Owner> owners_;
  std::string text_;
};

TEST_F(StatusPageTest, SaysWhatTheNodeIs) {
  const Parsed node = Page()["node"];
  EXPECT_EQ(node["name"], "node-7");
  EXPECT_EQ(node["version"], "1.2.3");
  EXPECT_EQ(node["provider"], world_.provider.name());
  EXPECT_EQ(node["policy_file"], "/etc/policy");
  EXPECT_EQ(node["connections"], 5);
  EXPECT_EQ(node["draining"], false);
  EXPECT_EQ(node["policy_refused"], false);
  EXPECT_EQ(node["healthy"], true);
}

TEST_F(StatusPageTest, SaysHowLongOlderGenerationsServe) {
  EXPECT_TRUE(Page()["older_generations"].empty());
  older_ = {{.generation = 3, .sessions = 5, .deadline = world_.clock.Now() + std::chrono::seconds(9)},
            {.generation = 4, .sessions = 1, .deadline = world_.clock.Now() - std::chrono::seconds(1)}};
  const Parsed older = Page()["older_generations"];
  EXPECT_EQ(older[0], Parsed({{"generation", 3}, {"sessions", 5}, {"left_ms", 9000}}));
  EXPECT_EQ(older[1]["left_ms"], 0);
}

TEST_F(StatusPageTest, OneSickAdapterMakesTheNodeUnhealthy) {
  adapters_.push_back({.name = "mlx5_0", .healthy = false, .remark = "port down"});
  world_.draining = true;
  world_.tenants.SetPolicyError("line 1");
  const Parsed page = Page();
  EXPECT_EQ(page["node"]["healthy"], false);
  EXPECT_EQ(page["node"]["draining"], true);
  EXPECT_EQ(page["node"]["policy_refused"], true);
  EXPECT_EQ(page["adapters"][1]["remark"], "port down");
}

TEST_F(StatusPageTest, ShowsWhoHoldsWhat) {
  Owner& owner = owners_.emplace_back(world_);
  const MemoryRegionId region = owner.Region();
  ASSERT_TRUE(owner.Register(region, owner.Memory(2), 2 * core::kPage).ok());
  const Parsed page = Page();
  ASSERT_EQ(page["sessions"]["rows"].size(), 1u);
  const Parsed& session = page["sessions"]["rows"][0];
  EXPECT_EQ(session["id"], std::to_string(owner.session->id().value));
  EXPECT_EQ(session["label"], "test");
  EXPECT_EQ(session["uid"], 1000);
  EXPECT_EQ(session["pinned_bytes"], 2 * core::kPage);
  EXPECT_EQ(session["regions"], 1);
  ASSERT_EQ(page["regions"]["rows"].size(), 1u);
  EXPECT_EQ(page["regions"]["rows"][0]["session"], session["id"]);
  EXPECT_EQ(page["regions"]["rows"][0]["state"], "registered");
  EXPECT_EQ(page["regions"]["rows"][0]["pages"], 2);
  EXPECT_EQ(page["regions"]["rows"][0]["rights"], "local write, remote write");
  ASSERT_EQ(page["tenants"]["rows"].size(), 1u);
  EXPECT_EQ(page["tenants"]["rows"][0]["name"], session["tenant"]);
}

TEST_F(StatusPageTest, ShowsWhoListensAndWhoIsConnected) {
  core::ConnectionOwner server(world_, 1);
  core::ConnectionOwner client(world_, 2);
  const auto [passive, active] = Connect(server, client);
  std::map<std::string, Parsed> ends;
  const Parsed page = Page();
  for (const Parsed& row : page["ends"]["rows"]) {
    ends[row["side"]] = row;
  }
  const Parsed& listener = ends["listener"];
  EXPECT_EQ(listener["session"], std::to_string(server.session->id().value));
  EXPECT_EQ(listener["state"], "listening");
  EXPECT_EQ(listener["local"], server.listening_at.ToText());
  EXPECT_THAT(listener["listener"].dump(), HasSubstr("/array\""));
  EXPECT_EQ(listener["reported"], 1);
  EXPECT_EQ(ends["passive"]["id"], std::to_string(passive.value));
  EXPECT_EQ(ends["passive"]["state"], "requested");
  EXPECT_EQ(ends["passive"]["local"], listener["local"]);
  EXPECT_EQ(ends["active"]["id"], std::to_string(active.value));
  EXPECT_EQ(ends["active"]["state"], "connecting");
  EXPECT_EQ(ends["active"]["peer"], listener["local"]);
}

TEST_F(StatusPageTest, HasNoKeyThatIsNotAllowed) {
  core::ConnectionOwner server(world_, 1);
  core::ConnectionOwner client(world_, 2);
  Connect(server, client);
  Owner& owner = owners_.emplace_back(world_, 3);
  ASSERT_TRUE(owner.Register(owner.Region(), owner.Memory(1), core::kPage).ok());
  Refuse();
  history_.Sample(world_.clock.Now(), *world_.ledger);
  core::MemoryPool pool(world_.os, world_.ledger, {{.pages = {}, .file_bytes = uint64_t{1} << 20, .files = 1}});
  world_.node.pool = &pool;
  older_.push_back({.generation = 1, .sessions = 0, .deadline = {}});
  std::set<std::string> keys;
  CollectKeys(Page(), &keys);
  EXPECT_EQ(keys, kAllowed);
}

TEST_F(StatusPageTest, ShowsNoTokenAndNoAddress) {
  Owner& owner = owners_.emplace_back(world_);
  const auto registered = owner.Register(owner.Region(), owner.Memory(1), core::kPage);
  ASSERT_TRUE(registered.ok());
  Page();
  for (const uint64_t secret : {uint64_t{registered->local_token.value}, uint64_t{registered->remote_token.value},
                                registered->base_address.value}) {
    EXPECT_THAT(text_, Not(HasSubstr(":" + std::to_string(secret) + ",")));
    EXPECT_THAT(text_, Not(HasSubstr("\"" + std::to_string(secret) + "\"")));
  }
}

TEST_F(StatusPageTest, ShowsNoSecretOfAGrant) {
  const auto grant = world_.tenants.CreateGrant({.name = "pod-7", .lifetime = std::chrono::hours(1)});
  ASSERT_TRUE(grant.ok()) << grant.status();
  const Parsed page = Page();
  ASSERT_EQ(page["tenants"]["rows"].size(), 1u);
  EXPECT_EQ(page["tenants"]["rows"][0]["by_grant"], true);
  EXPECT_THAT(text_, Not(HasSubstr(grant->secret)));
}

TEST_F(StatusPageTest, MarkupInALabelStaysText) {
  const std::string label = "<img src=x onerror=alert(1)>\"";
  auto session = world_.registry.Open(core::CallerNumbered(1), label);
  ASSERT_TRUE(session.ok());
  EXPECT_EQ(Page()["sessions"]["rows"][0]["label"], label);
}

TEST_F(StatusPageTest, AFailureHasItsReasonAndWhatItMeans) {
  Refuse();
  Refuse();
  const Parsed page = Page();
  ASSERT_EQ(page["failures"].size(), 1u);
  EXPECT_EQ(page["failures"][0]["reason"], "QUOTA_PINNED_BYTES");
  EXPECT_EQ(page["failures"][0]["sentence"], RowOf(ErrorReason::QUOTA_PINNED_BYTES).sentence);
  EXPECT_EQ(page["failures"][0]["count"], 2);
}

TEST_F(StatusPageTest, ManySessionsAreCutAndTheRestIsCounted) {
  for (uint64_t number = 1; number <= StatusPage::kSessionsMost + 3; ++number) {
    AddSession(number, 0);
  }
  const Parsed page = Page();
  EXPECT_EQ(page["sessions"]["rows"].size(), StatusPage::kSessionsMost);
  EXPECT_EQ(page["sessions"]["more"], 3);
}

TEST_F(StatusPageTest, ManyTenantsAreCutAndTheRestIsCounted) {
  for (uint64_t number = 1; number <= StatusPage::kTenantsMost + 2; ++number) {
    owners_.emplace_back(world_, number, static_cast<uint32_t>(number));
  }
  const Parsed page = Page();
  EXPECT_EQ(page["tenants"]["rows"].size(), StatusPage::kTenantsMost);
  EXPECT_EQ(page["tenants"]["more"], 2);
}

TEST_F(StatusPageTest, ASessionOfManyRegionsLeavesRoomForTheOthers) {
  for (uint64_t number = 1; number <= 3; ++number) {
    AddSession(number, number == 2 ? 10 : StatusPage::kRegionsMost);
  }
  const std::string small = std::to_string(owners_[1].session->id().value);
  const Parsed page = Page();
  EXPECT_EQ(page["regions"]["rows"].size(), StatusPage::kRegionsMost);
  EXPECT_EQ(page["regions"]["more"], 2 * StatusPage::kRegionsMost + 10 - StatusPage::kRegionsMost);
  size_t of_small = 0;
  for (const Parsed& region : page["regions"]["rows"]) {
    of_small += region["session"] == small ? 1 : 0;
  }
  EXPECT_EQ(of_small, 10u);
}

TEST_F(StatusPageTest, FrequentRequestsGetTheLastResponse) {
  StatusPage page = Make();
  const std::string first = page.Json(WallTime{});
  Refuse();
  EXPECT_EQ(page.Json(WallTime(std::chrono::seconds(1))), first);
  world_.clock.Advance(StatusPage::kFresh);
  EXPECT_THAT(page.Json(WallTime(std::chrono::seconds(1))), HasSubstr("QUOTA_PINNED_BYTES"));
}

}  // namespace
}  // namespace rnicd::status_page
