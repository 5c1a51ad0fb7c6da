#include "daemon/core/tenant/tenant.h"

#include <utility>

namespace rnicd::core {

Tenant::Tenant(std::string name, std::string rule, GrantId grant, uint64_t number, const TenantLimits& limits,
               const std::shared_ptr<Ledger>& node, const Clock& clock, std::shared_ptr<TenantTally> tally)
    : name_(std::move(name)),
      rule_(std::move(rule)),
      grant_(grant),
      number_(number),
      ledger_(std::make_shared<Ledger>(limits.tenant, node)),
      pins_(std::make_shared<PinnedFiles>(ledger_, true)),
      rate_(clock, limits.tenant_rate),
      tally_(tally != nullptr ? std::move(tally) : std::make_shared<TenantTally>(name_)),
      limits_(limits),
      connections_(std::make_shared<ConnectionRules>(limits.connections)),
      workload_(std::make_shared<Workload>()) {}

void Tenant::SetLimits(const TenantLimits& limits) {
  MutexLock lock(mutex_);
  limits_ = limits;
  connections_ = std::make_shared<ConnectionRules>(limits.connections);
  ledger_->SetLimits(limits.tenant);
  rate_.Set(limits.tenant_rate);
}

TenantLimits Tenant::limits() const {
  MutexLock lock(mutex_);
  return limits_;
}

std::shared_ptr<const ConnectionRules> Tenant::connections() const {
  MutexLock lock(mutex_);
  return connections_;
}

std::shared_ptr<const Workload> Tenant::workload() const {
  MutexLock lock(mutex_);
  return workload_;
}

void Tenant::SetWorkload(WorkloadName name, std::shared_ptr<const DeviceSet> devices) {
  MutexLock lock(mutex_);
  if (workload_->name != name || workload_->devices != devices) {
    workload_ = std::make_shared<Workload>(Workload{.name = std::move(name), .devices = std::move(devices)});
  }
}

void Tenant::BindTo(const std::string& pod_uid) {
  MutexLock lock(mutex_);
  if (pod_uid_.empty()) {
    pod_uid_ = pod_uid;
  }
}

std::string Tenant::pod_uid() const {
  MutexLock lock(mutex_);
  return pod_uid_;
}

bool Tenant::Admits(std::string_view pod_uid) const {
  MutexLock lock(mutex_);
  return !closed() && (pod_uid_.empty() || pod_uid_ == pod_uid);
}

}  // namespace rnicd::core
