#include <cstdio>

#include "client/ctl/output/views.h"

namespace rnicd::ctl {
namespace {

constexpr int kClaimWidth = 64;
constexpr int kWhatWidth = 69;

std::string_view OutcomeName(SelftestOutcome outcome) {
  switch (outcome) {
    case SelftestOutcome::kHolds:
      return "holds";
    case SelftestOutcome::kKnownGap:
      return "known gap";
    case SelftestOutcome::kFails:
      break;
  }
  return "FAILS";
}

template <typename... Arguments>
std::string Line(const char* format, Arguments... arguments) {
  char line[256];
  std::snprintf(line, sizeof line, format, arguments...);
  return line;
}

}  // namespace

std::string SelftestAdapterText(const SelftestAdapter& adapter) {
  std::string text = "adapter " + adapter.name + " of provider " + adapter.provider + ", " + adapter.technology + "\n";
  if (!adapter.fast_engine.empty()) {
    text += "fast registrations by \"" + adapter.fast_engine + "\": " + adapter.fast_engine_reason + "\n";
  }
  return text + "\n";
}

std::string SelftestCheckText(const SelftestCheck& check) {
  std::string text = Line("%03u  %-*s  %s\n", check.row, kClaimWidth, check.claim.c_str(),
                          std::string(OutcomeName(check.outcome)).c_str());
  if (!check.message.empty()) {
    text += "     " + check.message + "\n";
  }
  return text;
}

std::string SelftestTimingTitle() { return Line("\n%-*s %10s %10s\n", kWhatWidth, "microseconds", "p50", "p99"); }

std::string SelftestTimingText(const SelftestTiming& timing) {
  if (!timing.message.empty()) {
    return Line("%-*s %s\n", kWhatWidth, timing.what.c_str(), timing.message.c_str());
  }
  return Line("%-*s %10.1f %10.1f\n", kWhatWidth, timing.what.c_str(), timing.p50_us, timing.p99_us);
}

std::string SelftestVerdict(const SelftestReport& report) {
  return "\n" + Counted(report.checks.size(), "check") + ": " +
         std::to_string(report.CountOf(SelftestOutcome::kHolds)) + " hold, " +
         Counted(report.CountOf(SelftestOutcome::kKnownGap), "known gap") + ", " +
         std::to_string(report.CountOf(SelftestOutcome::kFails)) + " fail\n";
}

Json SelftestJson(const SelftestReport& report) {
  Json checks = Json::array();
  for (const SelftestCheck& check : report.checks) {
    checks.push_back({{"row", check.row},
                      {"claim", check.claim},
                      {"outcome", check.outcome == SelftestOutcome::kFails ? "fails" : OutcomeName(check.outcome)},
                      {"message", check.message}});
  }
  Json timings = Json::array();
  for (const SelftestTiming& timing : report.timings) {
    timings.push_back({{"what", timing.what},
                       {"p50_microseconds", timing.p50_us},
                       {"p99_microseconds", timing.p99_us},
                       {"rounds", timing.rounds},
                       {"message", timing.message}});
  }
  return {{"adapter", report.adapter.name},
          {"provider", report.adapter.provider},
          {"technology", report.adapter.technology},
          {"fast_engine", report.adapter.fast_engine},
          {"fast_engine_reason", report.adapter.fast_engine_reason},
          {"checks", std::move(checks)},
          {"timings", std::move(timings)},
          {"held", report.CountOf(SelftestOutcome::kFails) == 0}};
}

}  // namespace rnicd::ctl
