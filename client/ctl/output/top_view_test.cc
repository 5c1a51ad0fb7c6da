#include "client/ctl/output/top_view.h"

#include "gtest/gtest.h"

namespace rnicd::ctl {
namespace {

v1::ResourceUse Pinned(uint64_t used) {
  v1::ResourceUse use;
  use.set_name("pinned_bytes");
  use.set_used(used);
  use.set_limit(1u << 20);
  return use;
}

// The given numbers of tenants and sessions, each with one page more than the one before.
TopState SomeState(size_t tenants, size_t sessions) {
  TopState state;
  state.status.set_version("0.1.0");
  state.status.set_provider("soft");
  state.status.set_pid(99);
  state.status.set_uptime_ms(3'000);
  state.status.set_sessions(sessions);
  state.status.set_tenants(tenants);
  state.status.set_threads(14);
  state.status.set_resident_bytes(20u << 20);
  *state.status.add_resources() = Pinned(512u << 10);
  for (size_t index = 0; index < tenants; ++index) {
    v1::TenantInfo& tenant = state.tenants.emplace_back();
    tenant.set_name("tenant" + std::to_string(index));
    *tenant.add_resources() = Pinned(index * 4096);
  }
  for (size_t index = 0; index < sessions; ++index) {
    v1::SessionInfo& session = state.sessions.emplace_back();
    session.set_session_id(index);
    session.set_label("session" + std::to_string(index));
    *session.add_resources() = Pinned(index * 4096);
  }
  return state;
}

bool Has(const std::string& line, const std::string& text) { return line.find(text) != std::string::npos; }

TEST(TopView, ShowsTheNodeThenTenantsThenSessionsWithTheMostPinnedFirst) {
  const std::vector<std::string> lines = TopLines(SomeState(2, 3), {});
  ASSERT_EQ(lines.size(), 12u);
  EXPECT_EQ(lines[0], "rnicd 0.1.0, soft, pid 99, up 3 s");
  EXPECT_EQ(lines[1], "3 sessions (0 ending), 2 tenants, 0 grants, 0 connections, 14 threads, 20 MiB resident");
  EXPECT_EQ(lines[2], "pinned 512 KiB / 1 MiB [#####.....]   memory 0 B   regions 0");
  EXPECT_EQ(lines[3], "");
  EXPECT_TRUE(lines[4].starts_with("TENANT"));
  EXPECT_TRUE(lines[5].starts_with("tenant1 ")) << lines[5];
  EXPECT_TRUE(lines[6].starts_with("tenant0 ")) << lines[6];
  EXPECT_EQ(lines[7], "");
  EXPECT_TRUE(lines[8].starts_with("SESSION"));
  EXPECT_TRUE(Has(lines[9], "session2")) << lines[9];
  EXPECT_TRUE(Has(lines[11], "session0")) << lines[11];
}

TEST(TopView, SortedSessionsKeepTheirGenerations) {
  TopState state = SomeState(0, 2);
  state.session_generations = {2, 1};
  state.older.emplace_back().set_generation(1);
  const std::vector<std::string> lines = TopLines(state, {});
  EXPECT_EQ(lines[0], "rnicd 0.1.0, soft, pid 99, up 3 s, 0 sessions in generation 1");
  ASSERT_EQ(lines.size(), 9u);
  EXPECT_TRUE(Has(lines[7], "session1") && lines[7].ends_with(" 1")) << lines[7];
  EXPECT_TRUE(Has(lines[8], "session0") && lines[8].ends_with(" 2")) << lines[8];
}

TEST(TopView, DrainingIsNotOverlooked) {
  TopState state = SomeState(0, 0);
  state.status.set_draining(true);
  EXPECT_EQ(TopLines(state, {})[0], "rnicd 0.1.0, soft, pid 99, up 3 s, DRAINING");
}

TEST(TopView, FitsTheScreenAndSaysWhatIsMissing) {
  for (size_t rows = 1; rows < 120; ++rows) {
    for (const auto& [tenants, sessions] : {std::pair<size_t, size_t>{40, 40}, {2, 60}, {60, 2}, {1, 1}, {0, 0}}) {
      const std::vector<std::string> lines = TopLines(SomeState(tenants, sessions), {.rows = rows, .columns = 60});
      EXPECT_LE(lines.size(), rows);
      for (const std::string& line : lines) {
        EXPECT_LE(line.size(), 60u);
      }
    }
  }
  // 25 rows: 5 for the rest, 20 for two tables of 41 lines.
  const std::vector<std::string> both = TopLines(SomeState(40, 40), {.rows = 25, .columns = 200});
  ASSERT_EQ(both.size(), 25u);
  EXPECT_EQ(both[13], "... 32 more");
  EXPECT_TRUE(both[15].starts_with("SESSION")) << both[15];
  EXPECT_EQ(both[24], "... 32 more");
  // Tenants get the space that the sessions leave.
  const std::vector<std::string> few = TopLines(SomeState(40, 1), {.rows = 25, .columns = 200});
  ASSERT_EQ(few.size(), 25u);
  EXPECT_EQ(few[21], "... 24 more");
  EXPECT_TRUE(Has(few[24], "session0")) << few[24];
  // And vice versa.
  const std::vector<std::string> one_tenant = TopLines(SomeState(1, 40), {.rows = 25, .columns = 200});
  ASSERT_EQ(one_tenant.size(), 25u);
  EXPECT_TRUE(one_tenant[7].starts_with("SESSION")) << one_tenant[7];
  EXPECT_EQ(one_tenant[24], "... 24 more");
}

TEST(TopView, JsonHasTheSameParts) {
  const Json json = TopJson(SomeState(2, 3));
  EXPECT_EQ(json["status"]["version"], "0.1.0");
  EXPECT_EQ(json["tenants"].size(), 2u);
  EXPECT_EQ(json["sessions"].size(), 3u);
}

}  // namespace
}  // namespace rnicd::ctl
