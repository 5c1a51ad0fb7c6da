#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/status.h"
#include "client/ctl/commands/adapters.h"
#include "client/ctl/commands/command_rows.h"
#include "client/ctl/line/common_options.h"
#include "client/ctl/trials/selftest_checks.h"

namespace rnicd::ctl {
namespace {

// Engine that registers when the request is posted.
constexpr std::string_view kRegistrationEngine = "registration";

absl::StatusOr<SelftestAdapter> Describe(const SelftestOptions& options) {
  RNICD_ASSIGN_OR_RETURN(const v1::ListAdaptersResponse list, ListAdapters(options.socket_dir));
  for (const v1::AdapterSummary& adapter : list.adapters()) {
    if (options.adapter.empty() || adapter.name() == options.adapter) {
      return SelftestAdapter{.name = adapter.name(),
                             .provider = adapter.provider(),
                             .technology = TechnologyName(adapter.info().rdma_technology()),
                             .fast_engine = adapter.fast_engine(),
                             .fast_engine_reason = adapter.fast_engine_reason()};
    }
  }
  return absl::NotFoundError("there is no adapter '" + options.adapter + "'; see 'rnicctl adapters'");
}

SelftestCheck Run(const SelftestRule& rule, SelftestScene& scene, const SelftestAdapter& adapter) {
  scene.Reset();
  const absl::Status status = rule.check(scene);
  const bool known = rule.gap_of_registration && adapter.fast_engine == kRegistrationEngine;
  const SelftestOutcome otherwise = known ? SelftestOutcome::kKnownGap : SelftestOutcome::kFails;
  return {.row = rule.row,
          .claim = std::string(rule.claim),
          .outcome = status.ok() ? SelftestOutcome::kHolds : otherwise,
          .message = std::string(status.message())};
}

// Called as soon as something is known.
struct SelftestProgress {
  std::function<void(const SelftestAdapter&)> on_adapter;
  std::function<void(const SelftestCheck&)> on_check;
  std::function<void(const SelftestTiming&)> on_timing;
};

// Uses two sessions of this process on one adapter, an owner of memory and its peer: checks rules of NDK that a card
// has to keep, each over a connection of its own, then measures. Releases everything. The report has what was done
// before an error.
// Errors: the daemon's refusals and transport failures where nothing could be checked. A check that fails is no error.
absl::Status RunSelftest(const SelftestOptions& options, const SelftestProgress& progress, SelftestReport& report) {
  RNICD_ASSIGN_OR_RETURN(report.adapter, Describe(options));
  progress.on_adapter(report.adapter);
  RNICD_ASSIGN_OR_RETURN(const std::unique_ptr<SelftestScene> scene, SelftestScene::Open(options));
  for (const SelftestRule& rule : SelftestRules()) {
    report.checks.push_back(Run(rule, *scene, report.adapter));
    progress.on_check(report.checks.back());
  }
  if (options.bench) {
    RunSelftestBench(*scene, [&](SelftestTiming timing) {
      report.timings.push_back(std::move(timing));
      progress.on_timing(report.timings.back());
    });
  }
  return absl::OkStatus();
}

absl::Status RunCommand(const CommandLine& line, Output& output) {
  const SelftestOptions options{.socket_dir = SocketDir(line),
                                .grant = GrantOf(line),
                                .adapter = line.Value("--adapter").value_or(""),
                                .bench = !line.Has("--no-bench")};
  const auto say = [&output](const std::string& text) {
    if (!output.json()) {
      output.Text(text);
    }
  };
  bool timed = false;
  const SelftestProgress progress{
      .on_adapter = [&](const SelftestAdapter& adapter) { say(SelftestAdapterText(adapter)); },
      .on_check = [&](const SelftestCheck& check) { say(SelftestCheckText(check)); },
      .on_timing =
          [&](const SelftestTiming& timing) {
            say((std::exchange(timed, true) ? "" : SelftestTimingTitle()) + SelftestTimingText(timing));
          }};
  SelftestReport report;
  RNICD_RETURN_IF_ERROR(RunSelftest(options, progress, report));
  output.Result(SelftestVerdict(report), SelftestJson(report));
  const uint64_t failed = report.CountOf(SelftestOutcome::kFails);
  return failed == 0 ? absl::OkStatus() : absl::InternalError(Counted(failed, "check") + " failed");
}

constexpr std::array kOptions = {
    OptionSpec{"--adapter", "NAME", "the adapter to try (default: the node's first)", ""},
    OptionSpec{"--no-bench", "", "only check, measure nothing", ""},
    kGrantOption,
};

}  // namespace

constinit const CommandSpec kSelftestCommand = {
    .name = "selftest",
    .summary = "check on a real adapter that NDK's rules hold, and measure it",
    .description =
        "Opens two sessions on the adapter, an owner of memory and its peer, and tries rights, bounds and lifetimes "
        "of\n"
        "registrations and fast registrations, each named by its row in docs/ndk-conformance.md. Then measures\n"
        "registrations and writes. Takes some seconds and touches nothing of other sessions. The output has no\n"
        "addresses or other facts about the node, so it can be shown to others. If a check fails, the exit code is "
        "1.\n",
    .examples = "rnicctl selftest\nrnicctl selftest --adapter mlx5_0\nrnicctl selftest --adapter mlx5_0 --json\n",
    .options = kOptions,
    .run = RunCommand,
};

}  // namespace rnicd::ctl
