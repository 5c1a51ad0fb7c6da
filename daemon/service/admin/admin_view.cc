#include "daemon/service/admin/admin_view.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "base/status.h"
#include "base/system/process_usage.h"
#include "base/system/this_process.h"
#include "daemon/core/memory/memory_pool.h"
#include "daemon/policy/connections_wire.h"
#include "daemon/policy/limits_wire.h"
#include "daemon/service/messages/convert.h"
#include "daemon/service/messages/workload_wire.h"

namespace rnicd::service {
namespace {

// Maximum sizes that the proto files document.
constexpr size_t kInspectedRegions = 1000;
constexpr size_t kDumpedRegions = 100'000;

uint64_t MillisecondsOf(Instant::duration duration) {
  const auto count = std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
  return static_cast<uint64_t>(std::max<decltype(count)>(count, 0));
}

// Moves items into a repeated field until it has `most` entries.
template <typename Item>
void Append(std::vector<Item> items, size_t most, google::protobuf::RepeatedPtrField<Item>* field) {
  for (Item& item : items) {
    if (static_cast<size_t>(field->size()) == most) {
      return;
    }
    *field->Add() = std::move(item);
  }
}

v1::TenantInfo ToInfo(core::Tenant& tenant) {
  v1::TenantInfo info;
  info.set_name(tenant.name());
  info.set_rule(tenant.rule());
  info.set_grant_id(tenant.grant().value);
  info.set_sessions(tenant.ledger()->used(core::Resource::kSessions));
  ToWire(*tenant.ledger(), info.mutable_resources());
  info.set_requests_per_second(tenant.rate().per_second());
  *info.mutable_workload() = ToWire(tenant.workload()->name);
  return info;
}

// `health` is null before the first probe has ended.
v1::AdapterStatus ToStatus(const provider::AdapterDescription& adapter, const health::AdapterHealth* health) {
  v1::AdapterStatus status;
  status.set_name(adapter.name);
  status.set_healthy(health != nullptr && health->healthy);
  if (health == nullptr) {
    status.set_failure("nobody tried it yet");
  } else if (!health->healthy) {
    status.set_failure(std::string(RowOf(ErrorInfoOf(health->status).reason).name) + ": " +
                       std::string(health->status.message()));
  }
  if (adapter.numa_node >= 0) {
    status.set_numa_node(static_cast<uint32_t>(adapter.numa_node));
  }
  return status;
}

v1::MemoryPoolStatus ToStatus(const core::MemoryPool::State& pool) {
  v1::MemoryPoolStatus status;
  for (const core::MemoryPool::ClassState& each : pool.classes) {
    v1::MemoryPoolClass& row = *status.add_classes();
    row.set_page_bytes(each.wanted.pages.page_bytes);
    if (each.wanted.pages.numa_node.has_value()) {
      row.set_numa_node(*each.wanted.pages.numa_node);
    }
    row.set_file_bytes(each.wanted.file_bytes);
    row.set_files(each.wanted.files);
    row.set_ready(each.ready);
  }
  for (const core::MemoryPool::Service& service : pool.served) {
    v1::MemoryPoolService& row = *status.add_services();
    row.set_page_bytes(service.page_bytes);
    row.set_hits(service.hits);
    row.set_misses(service.misses);
  }
  status.set_refilled_files(pool.refilled_files);
  status.set_refill_ms(MillisecondsOf(pool.refill_time));
  status.set_blocked(std::string(pool.blocked.message()));
  return status;
}

}  // namespace

uint64_t AdminView::MillisecondsSince(Instant instant) const { return MillisecondsOf(node_.clock.Now() - instant); }

v1::GetStatusResponse AdminView::Status() const {
  v1::GetStatusResponse status;
  status.set_version(process_.version());
  status.set_generation(process_.generation());
  status.set_provider(std::string(node_.provider.name()));
  status.set_pid(ProcessId());
  status.set_uptime_ms(MillisecondsSince(node_.started));
  status.set_metrics_address(process_.metrics_address());
  status.set_connections(process_.connections());
  for (const auto& listed : registry_.List()) {
    status.set_sessions(status.sessions() + 1);
    status.set_sessions_ending(status.sessions_ending() + (listed.session->ending() ? 1 : 0));
  }
  // A process that has just ended has nothing any more.
  node_.lingering.Sweep();
  ToWire(*node_.ledger, status.mutable_resources());
  status.set_registered_pages(node_.ledger->used(core::Resource::kRegisteredBytes) / kNdkPageBytes);
  status.set_fd_tickets(node_.tickets.size());
  status.set_device_regions(process_.device_regions());
  const ProcessUsage usage = ReadProcessUsage();
  status.set_open_fds(usage.open_fds);
  status.set_threads(usage.threads);
  status.set_resident_bytes(usage.resident_bytes);
  status.set_draining(node_.draining.load());
  status.set_policy_file(process_.policy_file());
  status.set_policy_error(node_.tenants.policy_error());
  status.set_tenants(node_.tenants.Tenants().size());
  status.set_grants(node_.tenants.Grants().size());
  for (v1::AdapterStatus& adapter : Adapters()) {
    *status.add_adapters() = std::move(adapter);
  }
  if (node_.pool != nullptr) {
    *status.mutable_memory_pool() = ToStatus(node_.pool->state());
  }
  return status;
}

std::vector<v1::AdapterStatus> AdminView::Adapters() const {
  const std::vector<health::AdapterHealth> verdicts = process_.adapters();
  std::vector<v1::AdapterStatus> adapters;
  for (const provider::AdapterDescription& adapter : node_.provider.ListAdapters()) {
    const auto is_its = [&](const health::AdapterHealth& health) { return health.adapter == adapter.name; };
    const auto verdict = std::find_if(verdicts.begin(), verdicts.end(), is_its);
    adapters.push_back(ToStatus(adapter, verdict == verdicts.end() ? nullptr : &*verdict));
  }
  return adapters;
}

std::vector<v1::TenantInfo> AdminView::Tenants() const {
  std::vector<v1::TenantInfo> infos;
  for (const std::shared_ptr<core::Tenant>& tenant : node_.tenants.Tenants()) {
    infos.push_back(ToInfo(*tenant));
  }
  return infos;
}

v1::GrantInfo AdminView::Grant(const core::GrantView& grant) const {
  const core::TenantLimits limits = grant.tenant->limits();
  v1::GrantInfo info;
  info.set_grant_id(grant.id.value);
  info.set_tenant(grant.tenant->name());
  info.set_pod_uid(grant.tenant->pod_uid());
  info.set_age_ms(MillisecondsSince(grant.created));
  if (grant.expiry.has_value()) {
    info.set_remaining_ms(MillisecondsOf(*grant.expiry - node_.clock.Now()));
  }
  *info.mutable_limits() = policy::ToWire(limits.tenant, limits.tenant_rate);
  *info.mutable_session_limits() = policy::ToWire(limits.session, limits.session_rate);
  *info.mutable_connections() = policy::ToWire(limits.connections);
  info.set_sessions(grant.tenant->ledger()->used(core::Resource::kSessions));
  if (grant.devices != nullptr) {
    *info.mutable_devices() = ToWire(*grant.devices);
  }
  *info.mutable_workload() = ToWire(grant.tenant->workload()->name);
  if (const core::DoorUse& use = grant.tenant->door(); use.exists()) {
    info.mutable_door()->set_socket_dir(process_.doors()->DirectoryOf(grant.id));
    info.mutable_door()->set_connections(use.connections());
    info.mutable_door()->set_refused(use.refused());
    info.mutable_door()->set_storms(use.storms());
  }
  return info;
}

std::vector<v1::GrantInfo> AdminView::Grants() const {
  std::vector<v1::GrantInfo> infos;
  for (const core::GrantView& grant : node_.tenants.Grants()) {
    infos.push_back(Grant(grant));
  }
  return infos;
}

std::vector<v1::PodInfo> AdminView::Pods() const {
  std::vector<v1::PodInfo> infos;
  for (const core::PodFacts& pod : node_.tenants.Pods()) {
    infos.push_back(ToWire(pod));
  }
  return infos;
}

v1::SessionInfo AdminView::Session(const core::SessionRegistry::Listed& listed) const {
  const core::Session& session = *listed.session;
  v1::SessionInfo info;
  info.set_session_id(session.id().value);
  info.set_label(session.label());
  info.set_pid(session.owner().pid);
  info.set_uid(session.owner().uid);
  info.set_gid(session.owner().gid);
  info.set_sid(session.owner().sid);
  info.set_age_ms(MillisecondsSince(session.opened()));
  info.set_connections(listed.connections);
  ToWire(session.ledger(), info.mutable_resources());
  info.set_tenant(session.tenant().name());
  info.set_pod_uid(session.owner().container.pod_uid);
  info.set_container_id(session.owner().container.id);
  info.set_ending(session.ending());
  return info;
}

std::vector<v1::RegionInfo> AdminView::Regions(const core::Session& session) {
  std::vector<v1::RegionInfo> regions;
  for (const auto& [id, view] : session.ViewRegions()) {
    v1::RegionInfo info = ToWire(view);
    info.set_session_id(session.id().value);
    info.set_mr_id(id.value);
    info.set_pid(session.owner().pid);
    info.set_uid(session.owner().uid);
    regions.push_back(std::move(info));
  }
  std::sort(regions.begin(), regions.end(), [](const auto& a, const auto& b) { return a.mr_id() < b.mr_id(); });
  return regions;
}

absl::StatusOr<v1::InspectSessionResponse> AdminView::Inspect(SessionId id) const {
  for (const auto& listed : registry_.List()) {
    if (listed.session->id() == id) {
      v1::InspectSessionResponse response;
      *response.mutable_session() = Session(listed);
      Append(Regions(*listed.session), kInspectedRegions, response.mutable_regions());
      return response;
    }
  }
  return MakeError(ErrorReason::SESSION_NOT_FOUND, "session_id");
}

v1::StateDump AdminView::Dump() const {
  v1::StateDump dump;
  *dump.mutable_status() = Status();
  for (v1::TenantInfo& tenant : Tenants()) {
    *dump.add_tenants() = std::move(tenant);
  }
  for (const auto& listed : registry_.List()) {
    *dump.add_sessions() = Session(listed);
    Append(Regions(*listed.session), kDumpedRegions, dump.mutable_regions());
  }
  for (v1::GrantInfo& grant : Grants()) {
    *dump.add_grants() = std::move(grant);
  }
  for (v1::PodInfo& pod : Pods()) {
    *dump.add_pods() = std::move(pod);
  }
  return dump;
}

}  // namespace rnicd::service
