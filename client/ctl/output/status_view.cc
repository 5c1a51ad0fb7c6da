#include "client/ctl/line/units.h"
#include "client/ctl/output/table.h"
#include "client/ctl/output/views.h"

namespace rnicd::ctl {
namespace {

// The classes, and how often they served. Empty without a pool.
std::string PoolText(const v1::MemoryPoolStatus& pool) {
  if (pool.classes().empty()) {
    return "";
  }
  Table files({{"POOL PAGES"},
               {"NODE", Align::kRight},
               {"FILE", Align::kRight},
               {"READY", Align::kRight},
               {"WANTED", Align::kRight}});
  for (const v1::MemoryPoolClass& each : pool.classes()) {
    files.AddRow({FormatBytes(each.page_bytes()), each.has_numa_node() ? std::to_string(each.numa_node()) : "any",
                  FormatBytes(each.file_bytes()), std::to_string(each.ready()), std::to_string(each.files())});
  }
  Table services({{"POOL PAGES"}, {"HITS", Align::kRight}, {"MISSES", Align::kRight}});
  for (const v1::MemoryPoolService& each : pool.services()) {
    services.AddRow({FormatBytes(each.page_bytes()), std::to_string(each.hits()), std::to_string(each.misses())});
  }
  const std::string blocked = pool.blocked().empty() ? "" : "\nThe pool cannot be refilled: " + pool.blocked() + "\n";
  return "\n" + files.Text() + "\n" + services.Text() + blocked;
}

Json PoolJson(const v1::MemoryPoolStatus& pool) {
  Json classes = Json::array();
  for (const v1::MemoryPoolClass& each : pool.classes()) {
    classes.push_back({{"page_bytes", each.page_bytes()},
                       {"numa_node", each.has_numa_node() ? Json(each.numa_node()) : Json()},
                       {"file_bytes", each.file_bytes()},
                       {"files", each.files()},
                       {"ready", each.ready()}});
  }
  Json services = Json::array();
  for (const v1::MemoryPoolService& each : pool.services()) {
    services.push_back({{"page_bytes", each.page_bytes()}, {"hits", each.hits()}, {"misses", each.misses()}});
  }
  return {{"classes", std::move(classes)},
          {"services", std::move(services)},
          {"refilled_files", pool.refilled_files()},
          {"refill_ms", pool.refill_ms()},
          {"blocked", pool.blocked()}};
}

// A line for each older generation.
std::string OlderText(std::span<const v1::GetStatusResponse> older) {
  std::vector<std::pair<std::string, std::string>> lines;
  for (const v1::GetStatusResponse& each : older) {
    lines.emplace_back("generation " + std::to_string(each.generation()),
                       "has handed over; " + Counted(each.sessions(), "session") + ", pid " +
                           std::to_string(each.pid()) + ", version " + each.version());
  }
  return lines.empty() ? "" : "\n" + KeyValueLines(lines);
}

Json OlderJson(std::span<const v1::GetStatusResponse> older) {
  Json list = Json::array();
  for (const v1::GetStatusResponse& each : older) {
    list.push_back({{"generation", each.generation()},
                    {"sessions", each.sessions()},
                    {"pid", each.pid()},
                    {"version", each.version()}});
  }
  return list;
}

}  // namespace

std::string StatusText(const v1::GetStatusResponse& status, std::span<const v1::GetStatusResponse> older) {
  std::string policy = status.policy_file().empty() ? "each uid is a tenant" : status.policy_file();
  if (!status.policy_error().empty()) {
    policy += ", which is REFUSED; the one before it is in force. 'rnicctl reload' says why";
  }
  const std::string facts = KeyValueLines({
      {"version", status.version()},
      {"provider", status.provider()},
      {"pid", std::to_string(status.pid())},
      {"uptime", FormatMilliseconds(status.uptime_ms())},
      {"generation", std::to_string(status.generation())},
      {"draining", status.draining() ? "yes" : "no"},
      {"policy", policy},
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
  return facts + OlderText(older) + (status.resources().empty() ? "" : "\n" + table.Text()) +
         PoolText(status.memory_pool());
}

Json StatusJson(const v1::GetStatusResponse& status, std::span<const v1::GetStatusResponse> older) {
  Json json = {{"version", status.version()},
               {"provider", status.provider()},
               {"pid", status.pid()},
               {"uptime_ms", status.uptime_ms()},
               {"generation", status.generation()},
               {"older_generations", OlderJson(older)},
               {"draining", status.draining()},
               {"policy_file", status.policy_file()},
               {"policy_error", status.policy_error()},
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
  if (status.has_memory_pool()) {
    json["memory_pool"] = PoolJson(status.memory_pool());
  }
  return json;
}

std::string DrainText(const v1::DrainResponse& drain) {
  const bool nothing = drain.sessions() == 0 && drain.regions() == 0 && drain.pinned_bytes() == 0;
  const std::string left = nothing ? "nothing is left"
                                   : "left are " + Counted(drain.sessions(), "session") + ", " +
                                         Counted(drain.regions(), "region") + ", " + FormatBytes(drain.pinned_bytes()) +
                                         " pinned";
  return drain.draining() ? "draining: " + left + "\n" : "not draining: the daemon takes things on\n";
}

Json DrainJson(const v1::DrainResponse& drain) {
  return {{"draining", drain.draining()},
          {"sessions", drain.sessions()},
          {"regions", drain.regions()},
          {"pinned_bytes", drain.pinned_bytes()}};
}

std::string HealthText(bool ready) { return ready ? "ready\n" : "not ready\n"; }

Json HealthJson(bool ready) { return {{"ready", ready}}; }

std::string LiveText(bool live) { return live ? "alive\n" : "hangs\n"; }

Json LiveJson(bool live) { return {{"live", live}}; }

}  // namespace rnicd::ctl
