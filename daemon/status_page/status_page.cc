#include "daemon/status_page/status_page.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/system/this_process.h"
#include "daemon/core/memory/memory_pool.h"
#include "daemon/status_page/session_rows.h"

namespace rnicd::status_page {
namespace {

using core::Resource;

int64_t Milliseconds(WallTime time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

// Every resource with a limit, and those that the page shows without one.
Json Quotas(const core::Ledger& ledger) {
  Json quotas = Json::array();
  for (size_t index = 0; index < core::kResourceCount; ++index) {
    const auto resource = static_cast<Resource>(index);
    const bool always = resource == Resource::kPinnedBytes || resource == Resource::kSessions ||
                        (resource == Resource::kLingeringBytes && ledger.used(resource) != 0);
    if (always || ledger.limit(resource) != 0) {
      quotas.push_back({{"resource", core::ResourceName(resource)},
                        {"used", ledger.used(resource)},
                        {"limit", ledger.limit(resource)}});
    }
  }
  return quotas;
}

Json Adapters(const std::vector<AdapterState>& adapters) {
  Json rows = Json::array();
  for (const AdapterState& adapter : adapters) {
    rows.push_back({{"name", adapter.name}, {"healthy", adapter.healthy}, {"remark", adapter.remark}});
  }
  return rows;
}

int64_t MillisecondsOf(Instant::duration duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
}

Json OlderGenerations(const std::vector<core::OlderGeneration>& older, Instant now) {
  Json rows = Json::array();
  for (const core::OlderGeneration& each : older) {
    rows.push_back({{"generation", each.generation},
                    {"sessions", each.sessions},
                    {"left_ms", std::max<int64_t>(MillisecondsOf(each.deadline - now), 0)}});
  }
  return rows;
}

// A row for each page size; none without a pool.
Json Pool(const core::MemoryPool* pool) {
  Json rows = Json::array();
  if (pool == nullptr) {
    return rows;
  }
  const core::MemoryPool::State state = pool->state();
  for (const core::MemoryPool::Service& service : state.served) {
    uint64_t ready = 0;
    uint64_t wanted = 0;
    for (const core::MemoryPool::ClassState& each : state.classes) {
      if (each.wanted.pages.page_bytes == service.page_bytes) {
        ready += each.ready * each.wanted.file_bytes;
        wanted += each.wanted.files * each.wanted.file_bytes;
      }
    }
    rows.push_back({{"page_bytes", service.page_bytes},
                    {"ready_bytes", ready},
                    {"wanted_bytes", wanted},
                    {"hits", service.hits},
                    {"misses", service.misses}});
  }
  return rows;
}

// Null without a door.
Json Door(const core::DoorUse& door) {
  return door.exists()
             ? Json{{"connections", door.connections()}, {"refused", door.refused()}, {"storms", door.storms()}}
             : Json();
}

Json Tenants(const std::vector<std::shared_ptr<core::Tenant>>& tenants) {
  Json rows = Json::array();
  const size_t shown = std::min(tenants.size(), StatusPage::kTenantsMost);
  for (size_t index = 0; index < shown; ++index) {
    core::Tenant& tenant = *tenants[index];
    rows.push_back({{"name", tenant.name()},
                    {"rule", tenant.rule()},
                    {"by_grant", tenant.grant().value != 0},
                    {"door", Door(tenant.door())},
                    {"quotas", Quotas(*tenant.ledger())}});
  }
  return {{"rows", std::move(rows)}, {"more", tenants.size() - shown}};
}

Json Failures(const std::vector<Failure>& failures) {
  Json rows = Json::array();
  for (const Failure& failure : failures) {
    rows.push_back({{"number", failure.number},
                    {"first_ms", Milliseconds(failure.first)},
                    {"last_ms", Milliseconds(failure.last)},
                    {"count", failure.count},
                    {"what", failure.what},
                    {"tenant", failure.tenant},
                    {"pid", failure.pid},
                    {"uid", failure.uid},
                    {"reason", failure.reason},
                    {"sentence", failure.sentence},
                    {"field", failure.field},
                    {"note", failure.note}});
  }
  return rows;
}

// One list of values for each line of the charts.
Json Lines(const std::vector<Point>& points) {
  Json lines = {{"interval_ms", std::chrono::milliseconds(History::kInterval).count()}};
  const auto add = [&](const char* name, auto member) {
    Json& line = lines[name] = Json::array();
    for (const Point& point : points) {
      line.push_back(point.*member);
    }
  };
  add("pinned_bytes", &Point::pinned_bytes);
  add("registered_bytes", &Point::registered_bytes);
  add("sessions", &Point::sessions);
  add("registrations", &Point::registrations);
  add("failures", &Point::failures);
  add("calls", &Point::calls);
  return lines;
}

}  // namespace

StatusPage::StatusPage(const core::Node& node, const core::SessionRegistry& registry, const RecentFailures& failures,
                       const History& history, Facts facts)
    : node_(node), registry_(registry), failures_(failures), history_(history), facts_(std::move(facts)) {}

std::string StatusPage::Json(WallTime wall) {
  const Instant now = node_.clock.Now();
  MutexLock lock(mutex_);
  if (made_.empty() || now - made_at_ >= kFresh) {
    made_ = Make(wall);
    made_at_ = now;
  }
  return made_;
}

std::string StatusPage::Make(WallTime wall) const {
  const std::vector<AdapterState> adapters = facts_.adapters();
  const bool healthy = std::all_of(adapters.begin(), adapters.end(), [](const auto& state) { return state.healthy; });
  const SessionRows sessions = ReadSessions(registry_, node_.clock.Now());
  const status_page::Json page = {
      {"time_ms", Milliseconds(wall)},
      {"node",
       {{"name", facts_.node_name},
        {"version", facts_.version},
        {"provider", node_.provider.name()},
        {"pid", ProcessId()},
        {"uptime_ms", MillisecondsOf(node_.clock.Now() - node_.started)},
        {"healthy", healthy},
        {"draining", node_.draining.load()},
        {"policy_file", facts_.policy_file},
        {"policy_refused", !node_.tenants.policy_error().empty()},
        {"connections", facts_.connections()},
        {"quotas", Quotas(*node_.ledger)}}},
      {"older_generations", OlderGenerations(facts_.older_generations(), node_.clock.Now())},
      {"history", Lines(history_.Points())},
      {"adapters", Adapters(adapters)},
      {"memory_pool", Pool(node_.pool)},
      {"tenants", Tenants(node_.tenants.Tenants())},
      {"sessions", sessions.sessions},
      {"regions", sessions.regions},
      {"ends", sessions.ends},
      {"failures", Failures(failures_.List())}};
  return page.dump(-1, ' ', /*ensure_ascii=*/true, status_page::Json::error_handler_t::replace);
}

}  // namespace rnicd::status_page
