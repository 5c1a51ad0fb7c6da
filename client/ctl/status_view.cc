#include "client/ctl/table.h"
#include "client/ctl/units.h"
#include "client/ctl/views.h"

namespace rnicd::ctl {

std::string StatusText(const v1::GetStatusResponse& status) {
  const std::string facts = KeyValueLines({
      {"version", status.version()},
      {"provider", status.provider()},
      {"pid", std::to_string(status.pid())},
      {"uptime", FormatMilliseconds(status.uptime_ms())},
      {"draining", status.draining() ? "yes" : "no"},
      {"policy", status.policy_file().empty() ? "each uid is a tenant" : status.policy_file()},
      {"metrics", status.metrics_address().empty() ? "off" : "http://" + status.metrics_address() + "/metrics"},
      {"connections", std::to_string(status.connections())},
      {"sessions", std::to_string(status.sessions())},
      {"sessions ending", std::to_string(status.sessions_ending())},
      {"tenants", std::to_string(status.tenants())},
      {"grants", std::to_string(status.grants())},
      {"registered pages", std::to_string(status.registered_pages())},
      {"device regions", std::to_string(status.device_regions())},
      {"fd tickets", std::to_string(status.fd_tickets())},
      {"open fds", std::to_string(status.open_fds())},
      {"threads", std::to_string(status.threads())},
      {"resident memory", FormatBytes(status.resident_bytes())},
  });
  Table table({{"RESOURCE"}, {"USED", Align::kRight}, {"LIMIT", Align::kRight}});
  for (const v1::ResourceUse& resource : status.resources()) {
    table.AddRow({resource.name(), ResourceAmount(resource.name(), resource.used()),
                  resource.limit() == 0 ? "no limit" : ResourceAmount(resource.name(), resource.limit())});
  }
  return facts + (status.resources().empty() ? "" : "\n" + table.Text());
}

Json StatusJson(const v1::GetStatusResponse& status) {
  return {{"version", status.version()},
          {"provider", status.provider()},
          {"pid", status.pid()},
          {"uptime_ms", status.uptime_ms()},
          {"draining", status.draining()},
          {"policy_file", status.policy_file()},
          {"metrics_address", status.metrics_address()},
          {"connections", status.connections()},
          {"sessions", status.sessions()},
          {"sessions_ending", status.sessions_ending()},
          {"tenants", status.tenants()},
          {"grants", status.grants()},
          {"resources", ResourcesJson(status.resources())},
          {"registered_pages", status.registered_pages()},
          {"fd_tickets", status.fd_tickets()},
          {"device_regions", status.device_regions()},
          {"open_fds", status.open_fds()},
          {"threads", status.threads()},
          {"resident_bytes", status.resident_bytes()}};
}

}  // namespace rnicd::ctl
