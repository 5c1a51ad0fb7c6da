#include "daemon/app/observing/pages.h"

#include <chrono>
#include <utility>

#include "base/error_reason.h"
#include "base/status.h"
#include "base/system/process_usage.h"
#include "base/system/this_process.h"
#include "daemon/status_page/assets.h"

namespace rnicd::app {
namespace {

constexpr char kMetricsType[] = "text/plain; version=0.0.4; charset=utf-8";
constexpr char kTextType[] = "text/plain; charset=utf-8";
constexpr char kJsonType[] = "application/json";

// `audit` may be null.
metrics::AuditReading Reading(const audit::AuditLog* audit) {
  return audit == nullptr
             ? metrics::AuditReading()
             : metrics::AuditReading{.lost = audit->lost(), .merged = audit->merged(), .left_out = audit->left_out()};
}

std::vector<metrics::AdapterReading> Readings(const health::Prober& prober) {
  std::vector<metrics::AdapterReading> readings;
  for (const health::AdapterHealth& adapter : prober.Read()) {
    readings.push_back({.adapter = adapter.adapter,
                        .healthy = adapter.healthy,
                        .probes_ok = adapter.probes_ok,
                        .probes_failed = adapter.probes_failed,
                        .probe_seconds = std::chrono::duration<double>(adapter.last_duration).count()});
  }
  return readings;
}

size_t PartsNotServing(const health::ServingVerdict& verdict) {
  return verdict.hanging.size() + verdict.failing.size();
}

metrics::Page PageOf(health::HealthReport report) {
  return {.status = report.good ? 200 : 503, .content_type = kTextType, .body = std::move(report.text)};
}

std::vector<status_page::AdapterState> States(const health::Prober& prober) {
  std::vector<status_page::AdapterState> states;
  for (const health::AdapterHealth& adapter : prober.Read()) {
    const std::string_view reason = RowOf(ErrorInfoOf(adapter.status).reason).name;
    states.push_back({.name = adapter.adapter,
                      .healthy = adapter.healthy,
                      .remark = adapter.healthy ? std::string() : std::string(reason)});
  }
  return states;
}

metrics::Sources SourcesOf(const PageParts& parts) {
  return {.node = parts.node,
          .registry = parts.registry,
          .connections = parts.connections,
          .adapters = [&prober = parts.prober] { return Readings(prober); },
          .device_regions = [&prober = parts.prober] { return prober.RegionsOfOthers(); },
          .audit = [audit = parts.audit] { return Reading(audit); },
          .log_lines_lost = [&log = parts.log] { return log.lost(); },
          .parts_not_serving = [&serving = parts.serving] { return PartsNotServing(serving.Read()); },
          .process_started = ReadProcessStart(),
          .inherited = parts.inherited,
          .older_generations = parts.older_generations};
}

}  // namespace

std::string CountersText(const PageParts& parts) { return metrics::CountersText(parts.metrics, SourcesOf(parts)); }

absl::StatusOr<std::unique_ptr<Pages>> Pages::Start(const std::string& address, PageParts parts,
                                                    UniqueSocket listener) {
  std::unique_ptr<Pages> pages(new Pages(std::move(parts)));
  RNICD_ASSIGN_OR_RETURN(pages->exposer_, metrics::Exposer::Start(address, pages->Routes(), pages->parts_.node.clock,
                                                                  std::move(listener)));
  return pages;
}

Pages::Pages(PageParts parts) : parts_(std::move(parts)), sources_(SourcesOf(parts_)) {}

metrics::Page Pages::Metrics() const {
  return {.content_type = kMetricsType, .body = parts_.metrics.Render(metrics::ReadState(sources_), parts_.inherited)};
}

metrics::Page Pages::Ready() const {
  return PageOf(health::ReadinessText(parts_.prober.Read(), parts_.serving.Read(), parts_.node.clock.Now()));
}

metrics::Page Pages::Alive() const { return PageOf(health::LivenessText(parts_.serving.Read())); }

std::vector<metrics::Route> Pages::Routes() {
  std::vector<metrics::Route> routes;
  routes.push_back({.path = "/metrics", .page = [this] { return Metrics(); }});
  routes.push_back({.path = "/readyz", .page = [this] { return Ready(); }});
  routes.push_back({.path = "/healthz", .page = [this] { return Alive(); }});
  if (parts_.memory != nullptr) {
    AddStatusPage(routes);
  }
  return routes;
}

void Pages::AddStatusPage(std::vector<metrics::Route>& routes) {
  status_page_ = std::make_unique<status_page::StatusPage>(
      parts_.node, parts_.registry, parts_.memory->failures, parts_.memory->history,
      status_page::Facts{.node_name = HostName(),
                         .version = parts_.version,
                         .policy_file = parts_.policy_file,
                         .connections = parts_.connections,
                         .adapters = [&prober = parts_.prober] { return States(prober); },
                         .older_generations = parts_.older_generations});
  sampler_ = std::make_unique<status_page::Sampler>(parts_.memory->history, parts_.node.clock, *parts_.node.ledger);
  for (const status_page::Asset& asset : status_page::Assets()) {
    routes.push_back({.path = std::string(asset.path), .audience = metrics::Audience::kThisMachine, .page = [asset] {
                        return metrics::Page{.content_type = std::string(asset.content_type),
                                             .body = std::string(asset.body)};
                      }});
  }
  routes.push_back({.path = "/status.json", .audience = metrics::Audience::kThisMachine, .page = [this] {
                      return metrics::Page{.content_type = kJsonType,
                                           .body = status_page_->Json(std::chrono::system_clock::now())};
                    }});
}

}  // namespace rnicd::app
