#include "daemon/metrics/generations/inherited_counters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/core/session/core_fixture_test.h"
#include "daemon/metrics/metrics.h"
#include "daemon/metrics/state.h"

namespace rnicd::metrics {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr std::string_view kCalls[] = {"MemoryService.CreateMr"};
constexpr size_t kTenants = 3;

// The adapters of the soft provider, with a port of the kernel.
class ProviderWithPort final : public provider::Provider {
 public:
  ProviderWithPort(Provider& inner, std::string folder) : inner_(inner), folder_(std::move(folder)) {}

  std::string_view name() const override { return inner_.name(); }
  std::vector<provider::AdapterDescription> ListAdapters() const override {
    std::vector<provider::AdapterDescription> adapters = inner_.ListAdapters();
    adapters.front().port_folder = folder_;
    return adapters;
  }
  absl::StatusOr<std::unique_ptr<provider::DeviceAdapter>> OpenAdapter(std::string_view name) override {
    return inner_.OpenAdapter(name);
  }
  uint64_t live_regions() const override { return inner_.live_regions(); }
  provider::FastRegistrationCounts fast_registrations() const override { return inner_.fast_registrations(); }

 private:
  Provider& inner_;
  const std::string folder_;
};

// A daemon, as far as it counts.
struct Generation : core::WorldGround {
  explicit Generation(const std::string& port_folder)
      : WorldGround({}),
        with_port(provider, port_folder),
        wired({.os = os,
               .clock = clock,
               .random = random,
               .provider = with_port,
               .observer = observer,
               .workers = *workers,
               .reapers = *reapers}) {}

  Sources AllSources() {
    return {.node = wired.node,
            .registry = wired.registry,
            .connections = [] { return uint64_t{5}; },
            .adapters = [this] { return readings; },
            .device_regions = [] { return uint64_t{0}; },
            .audit = [] { return AuditReading{.lost = 2}; },
            .log_lines_lost = [] { return uint64_t{0}; },
            .parts_not_serving = [] { return size_t{0}; },
            .process_started = 1234.5,
            .inherited = &inherited,
            .older_generations = [this] { return older; }};
  }
  std::string Page() { return metrics.Render(ReadState(AllSources()), &inherited); }
  std::string Text() { return CountersText(metrics, AllSources()); }

  void CountCall(std::chrono::microseconds duration) {
    metrics.Report(core::RpcEnded{.method = kCalls[0], .code = absl::StatusCode::kOk, .duration = duration});
  }
  void CountRegistrations(const std::string& tenant, int count) {
    const auto grant = wired.tenants.CreateGrant({.name = tenant});
    for (int index = 0; index < count; ++index) {
      grant->tenant->tally()->CountRegistration(true);
    }
  }

  ProviderWithPort with_port;
  core::WiredNode wired;
  Metrics metrics{kCalls, "1.2.3"};
  std::vector<std::string> refused;
  InheritedCounters inherited{kTenants, [this](const absl::Status& status) { refused.emplace_back(status.message()); }};
  std::vector<AdapterReading> readings;
  std::vector<core::OlderGeneration> older;
};

bool Falls(const prometheus::ClientMetric& before, const prometheus::ClientMetric& after) {
  const auto& buckets = before.histogram.bucket;
  bool falls = after.counter.value < before.counter.value || after.histogram.sample_sum < before.histogram.sample_sum ||
               after.histogram.bucket.size() != buckets.size();
  for (size_t index = 0; !falls && index < buckets.size(); ++index) {
    falls = after.histogram.bucket[index].cumulative_count < buckets[index].cumulative_count;
  }
  return falls;
}

// The series of counters and histograms that have fallen, or are gone.
std::vector<std::string> Fallen(const std::string& before, const std::string& after) {
  std::vector<std::string> fallen;
  const CountersByName was = *ParseCounters(before);
  CountersByName is = *ParseCounters(after);
  for (const auto& [name, family] : was) {
    for (const auto& [labels, sample] : family.by_labels) {
      const auto& others = is[name].by_labels;
      const auto found = others.find(labels);
      if (found == others.end() || Falls(sample, found->second)) {
        fallen.push_back(name + (labels.empty() ? "" : " of " + labels.front().value));
      }
    }
  }
  return fallen;
}

class GenerationsTest : public ::testing::Test {
 protected:
  GenerationsTest()
      : port_(std::filesystem::temp_directory_path() / ("rnicd_generations." + std::to_string(getpid()))) {
    std::filesystem::create_directories(port_ / "counters");
    std::ofstream(port_ / "counters/port_rcv_data") << "1000\n";
  }
  ~GenerationsTest() override { std::filesystem::remove_all(port_); }

  const std::filesystem::path port_;
  Generation old_{port_.string()};
  Generation new_{port_.string()};
};

TEST_F(GenerationsTest, NoCounterFallsOverAHandOver) {
  old_.CountCall(std::chrono::microseconds(7));
  old_.CountRegistrations("a", 3);
  old_.readings = {{.adapter = "soft0", .probes_ok = 7}, {.adapter = "soft1", .probes_ok = 2}};
  new_.readings = {{.adapter = "soft0", .probes_ok = 1}};
  std::string last = old_.Page();
  const auto step = [&](const char* what) {
    const std::string page = new_.Page();
    EXPECT_THAT(Fallen(last, page), IsEmpty()) << what;
    last = page;
  };
  new_.inherited.Set(old_.Text());
  step("handed over");
  new_.CountCall(std::chrono::microseconds(9));
  new_.CountRegistrations("b", 1);
  step("the newer one works");
  old_.CountCall(std::chrono::milliseconds(9));
  new_.inherited.Set(old_.Text());
  step("the older one works");
  old_.readings.clear();
  new_.inherited.Set(old_.Text());
  step("a card has left the older one");
  new_.CountCall(std::chrono::seconds(60));
  step("the older one has ended");
}

TEST_F(GenerationsTest, CountersAreSums) {
  old_.CountRegistrations("a", 3);
  old_.CountRegistrations("gone", 4);
  new_.CountRegistrations("a", 2);
  old_.metrics.Report(core::ConnectionRefused{core::kRefusedUidLimit});
  new_.inherited.Set(old_.Text());
  const std::string page = new_.Page();
  EXPECT_THAT(page, HasSubstr("rnicd_registrations_total{tenant=\"grant/a\",result=\"ok\"} 5\n"));
  EXPECT_THAT(page, HasSubstr("rnicd_registrations_total{tenant=\"grant/gone\",result=\"ok\"} 4\n"));
  EXPECT_THAT(page, HasSubstr("rnicd_connections_refused_total{reason=\"connection_limit_uid\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("rnicd_audit_lines_lost_total 4\n"));
}

TEST_F(GenerationsTest, HistogramsAreSums) {
  old_.CountCall(std::chrono::microseconds(7));
  old_.CountCall(std::chrono::seconds(60));
  new_.CountCall(std::chrono::microseconds(7));
  new_.inherited.Set(old_.Text());
  const std::string page = new_.Page();
  const std::string name = "rnicd_rpc_duration_seconds";
  const std::string method = "{method=\"MemoryService.CreateMr\"";
  EXPECT_THAT(page, HasSubstr(name + "_count" + method + "} 3\n"));
  EXPECT_THAT(page, HasSubstr(name + "_sum" + method + "} 60.0000"));
  EXPECT_THAT(page, HasSubstr(name + "_bucket" + method + ",le=\"5e-06\"} 0\n"));
  EXPECT_THAT(page, HasSubstr(name + "_bucket" + method + ",le=\"1e-05\"} 2\n"));
  EXPECT_THAT(page, HasSubstr(name + "_bucket" + method + ",le=\"+Inf\"} 3\n"));
}

TEST_F(GenerationsTest, AThirdGenerationGoesOnWithBoth) {
  Generation third(port_.string());
  old_.CountRegistrations("a", 1);
  new_.CountRegistrations("a", 2);
  new_.inherited.Set(old_.Text());
  third.inherited.Set(new_.Text());
  EXPECT_THAT(third.Page(), HasSubstr("rnicd_registrations_total{tenant=\"grant/a\",result=\"ok\"} 3\n"));
}

TEST_F(GenerationsTest, NoCounterFallsWhenTheNewerOneDies) {
  old_.CountRegistrations("a", 1);
  new_.inherited.Set(old_.Text());
  new_.CountRegistrations("a", 2);
  new_.CountCall(std::chrono::microseconds(7));
  const std::string last = new_.Page();
  Sources alone = new_.AllSources();
  alone.inherited = nullptr;
  old_.inherited.Keep(CountersText(new_.metrics, alone));
  EXPECT_THAT(Fallen(last, old_.Page()), IsEmpty());
  old_.inherited.Keep(
      "# TYPE rnicd_registrations_total counter\n"
      "rnicd_registrations_total{tenant=\"grant/a\",result=\"ok\"} 4\n");
  EXPECT_THAT(old_.Page(), HasSubstr("rnicd_registrations_total{tenant=\"grant/a\",result=\"ok\"} 7\n"));
}

TEST_F(GenerationsTest, TheKernelsCountersAreNotDoubled) {
  new_.inherited.Set(old_.Text());
  const char* const series = "rnicd_port_statistics_total{adapter=\"soft0\",statistic=\"port_rcv_data\"} 1000\n";
  EXPECT_THAT(old_.Page(), HasSubstr(series));
  EXPECT_THAT(new_.Page(), HasSubstr(series));
}

TEST_F(GenerationsTest, ProcessorTimeIsThatOfAll) {
  new_.inherited.Set("# TYPE process_cpu_seconds_total counter\nprocess_cpu_seconds_total 1e+09\n");
  EXPECT_THAT(new_.Page(), HasSubstr("\nprocess_cpu_seconds_total 100000000"));
  EXPECT_THAT(new_.Page(), HasSubstr("\nprocess_start_time_seconds 1234.5\n"));
}

TEST_F(GenerationsTest, NoGaugeIsHandedOn) {
  EXPECT_THAT(old_.Text(), HasSubstr("process_cpu_seconds_total "));
  EXPECT_THAT(old_.Text(), Not(HasSubstr(" gauge\n")));
  EXPECT_THAT(old_.Text(), Not(HasSubstr("rnicd_connections ")));
}

TEST_F(GenerationsTest, ACounterThatOnlyTheOlderOneKnowsGoesOn) {
  new_.inherited.Set(
      "# HELP rnicd_later_total Of another release.\n# TYPE rnicd_later_total counter\n"
      "rnicd_later_total{kind=\"x\"} 7\n");
  const char* const lines =
      "# HELP rnicd_later_total Of another release.\n# TYPE rnicd_later_total counter\n"
      "rnicd_later_total{kind=\"x\"} 7\n";
  EXPECT_THAT(new_.Page(), HasSubstr(lines));
  EXPECT_THAT(new_.Text(), HasSubstr(lines));
}

TEST_F(GenerationsTest, ABrokenTextChangesNothingAndIsReportedOnce) {
  old_.CountRegistrations("a", 3);
  const std::string text = old_.Text();
  new_.inherited.Set(text);
  const char* const series = "rnicd_registrations_total{tenant=\"grant/a\",result=\"ok\"} 3\n";
  for (const std::string& broken : {std::string("no text"), text.substr(0, text.size() / 2) + "{",
                                    std::string(InheritedCounters::kTextBytesMost + 1, '\n')}) {
    new_.inherited.Set(broken);
    EXPECT_THAT(new_.Page(), HasSubstr(series));
  }
  EXPECT_THAT(new_.refused, ElementsAre("the last line has no end"));
  new_.inherited.Set(text);
  new_.inherited.Set("rnicd_rpcs_total 1\n");
  EXPECT_THAT(new_.refused, ElementsAre("the last line has no end", "line 1"));
}

TEST_F(GenerationsTest, ANameOfAnotherTypeIsIgnored) {
  new_.inherited.Set(
      "# TYPE rnicd_connections counter\nrnicd_connections 7\n"
      "# TYPE rnicd_sessions_opened_total counter\nrnicd_sessions_opened_total 2\n");
  const std::string page = new_.Page();
  EXPECT_THAT(page, HasSubstr("rnicd_connections 5\n"));
  EXPECT_THAT(page, HasSubstr("rnicd_sessions_opened_total 2\n"));
  EXPECT_THAT(new_.refused, ElementsAre("rnicd_connections is of another type here"));
}

TEST_F(GenerationsTest, TenantsBeyondTheLimitAreOther) {
  for (const char* const tenant : {"a", "b", "c", "d", "e"}) {
    old_.CountRegistrations(tenant, 2);
  }
  new_.inherited.Set(old_.Text());
  new_.inherited.Set(old_.Text());
  const std::string page = new_.Page();
  EXPECT_THAT(page, HasSubstr("rnicd_registrations_total{tenant=\"grant/c\",result=\"ok\"} 2\n"));
  EXPECT_THAT(page, HasSubstr("rnicd_registrations_total{tenant=\"other\",result=\"ok\"} 4\n"));
  EXPECT_THAT(page, Not(HasSubstr("grant/d")));
}

TEST_F(GenerationsTest, OlderGenerationsHaveSessionsAndADeadline) {
  EXPECT_THAT(new_.Page(), HasSubstr("rnicd_generations 1\n"));
  EXPECT_THAT(new_.Page(), Not(HasSubstr("rnicd_generation_sessions{")));
  new_.older = {{.generation = 3, .sessions = 2, .deadline = new_.clock.Now() + std::chrono::milliseconds(1500)},
                {.generation = 4, .sessions = 1, .deadline = new_.clock.Now() - std::chrono::seconds(1)}};
  const std::string page = new_.Page();
  for (const char* const line :
       {"rnicd_generations 3\n", "rnicd_generation_sessions{generation=\"3\"} 2\n",
        "rnicd_generation_deadline_seconds{generation=\"3\"} 1.5\n", "rnicd_generation_sessions{generation=\"4\"} 1\n",
        "rnicd_generation_deadline_seconds{generation=\"4\"} 0\n"}) {
    EXPECT_THAT(page, HasSubstr(line));
  }
}

}  // namespace
}  // namespace rnicd::metrics
