#include "client/ctl/line/units.h"
#include "client/ctl/output/views.h"

namespace rnicd::ctl {
namespace {

Json StepsJson(const std::vector<DemoStep>& steps) {
  Json list = Json::array();
  for (const DemoStep& step : steps) {
    Json json = {{"number", step.number}, {"text", step.text}};
    if (step.microseconds.has_value()) {
      json["microseconds"] = *step.microseconds;
    }
    list.push_back(std::move(json));
  }
  return list;
}

}  // namespace

std::string DemoStepText(const DemoStep& step) {
  const std::string took = step.microseconds.has_value() ? " (" + std::to_string(*step.microseconds) + " us)" : "";
  return (step.number < 10 ? " " : "") + std::to_string(step.number) + ". " + step.text + took + "\n";
}

std::function<void(const DemoStep&)> StepPrinter(Output& output) {
  return [&output](const DemoStep& step) {
    if (!output.json()) {
      output.Text(DemoStepText(step));
    }
  };
}

std::string FastRegisterVerdict(const FastRegisterReport& report) {
  return "It held: " + std::to_string(report.pages) + (report.pages == 1 ? " page" : " pages") +
         ", one work request, one token; every byte in its page, no access after the invalidation.\n";
}

Json FastRegisterJson(const FastRegisterReport& report) {
  return {{"demo", "fast-register"},
          {"pages", report.pages},
          {"bytes", report.bytes},
          {"seed", report.seed},
          {"base_virtual_address", FormatAddress(report.base_virtual_address)},
          {"remote_token", report.remote_token},
          {"steps", StepsJson(report.steps)},
          {"held", report.held}};
}

std::string PingpongVerdict(const PingpongReport& report) {
  const std::string bytes = FormatBytes(report.bytes);
  return report.listened
             ? "It held: another process wrote " + bytes + " into this memory, and every byte is as it says.\n"
             : "It held: " + bytes + " of another process were written and read, every byte.\n";
}

Json PingpongJson(const PingpongReport& report) {
  Json json = {{"role", report.listened ? "listener" : "connector"}, {"bytes", report.bytes}};
  if (!report.listened) {
    json["rounds"] = report.rounds;
    json["write_microseconds"] = report.write_us;
    json["read_microseconds"] = report.read_us;
  }
  json["steps"] = StepsJson(report.steps);
  json["held"] = report.held;
  return json;
}

}  // namespace rnicd::ctl
