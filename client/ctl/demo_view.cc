#include "client/ctl/units.h"
#include "client/ctl/views.h"

namespace rnicd::ctl {

std::string DemoStepText(const DemoStep& step) {
  const std::string took = step.microseconds.has_value() ? " (" + std::to_string(*step.microseconds) + " us)" : "";
  return (step.number < 10 ? " " : "") + std::to_string(step.number) + ". " + step.text + took + "\n";
}

std::string FastRegisterVerdict(const FastRegisterReport& report) {
  return "It held: " + std::to_string(report.pages) + (report.pages == 1 ? " page" : " pages") +
         ", one work request, one token; every byte in its page, no access after the invalidation.\n";
}

Json FastRegisterJson(const FastRegisterReport& report) {
  Json steps = Json::array();
  for (const DemoStep& step : report.steps) {
    Json json = {{"number", step.number}, {"text", step.text}};
    if (step.microseconds.has_value()) {
      json["microseconds"] = *step.microseconds;
    }
    steps.push_back(std::move(json));
  }
  return {{"demo", "fast-register"},
          {"pages", report.pages},
          {"bytes", report.bytes},
          {"seed", report.seed},
          {"base_virtual_address", FormatAddress(report.base_virtual_address)},
          {"remote_token", report.remote_token},
          {"steps", std::move(steps)},
          {"held", report.held}};
}

}  // namespace rnicd::ctl
