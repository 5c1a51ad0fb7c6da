#include "daemon/app/generation/contents_linux.h"

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>

#include "base/status.h"
#include "daemon/policy/connections_wire.h"
#include "daemon/policy/limits_wire.h"
#include "daemon/service/admin/admin_grants.h"
#include "daemon/service/messages/workload_wire.h"

namespace rnicd::app {
namespace {

v1::CreateGrantRequest GrantToWire(const core::HandedGrant& grant) {
  v1::CreateGrantRequest terms;
  terms.set_name(grant.name);
  terms.set_pod_uid(grant.pod_uid);
  terms.set_lifetime_ms(static_cast<uint64_t>(grant.lifetime.count()));
  *terms.mutable_limits() = policy::ToWire(grant.limits.tenant, grant.limits.tenant_rate);
  *terms.mutable_session_limits() = policy::ToWire(grant.limits.session, grant.limits.session_rate);
  *terms.mutable_connections() = policy::ToWire(grant.limits.connections);
  terms.set_door(grant.door);
  if (grant.renewal.has_value()) {
    terms.mutable_renewal()->set_grant_id(grant.renewal->id.value);
    if (grant.renewal->digest.has_value()) {
      const auto& bytes = grant.renewal->digest->bytes();
      terms.mutable_renewal()->set_secret_sha256(std::string(bytes.begin(), bytes.end()));
    }
  }
  if (grant.devices != nullptr) {
    *terms.mutable_devices() = service::ToWire(*grant.devices);
  }
  return terms;
}

}  // namespace

v1::HandoverProcess ToWire(const core::ProcessKey& process) {
  v1::HandoverProcess message;
  message.set_high(process.high);
  message.set_low(process.low);
  return message;
}

core::ProcessKey FromWire(const v1::HandoverProcess& process) { return {.high = process.high(), .low = process.low()}; }

v1::HandoverHeld ToWire(const core::HeldUse& use) {
  v1::HandoverHeld held;
  held.set_tenant(use.tenant);
  held.set_rule(use.rule);
  held.set_pod_uid(use.pod_uid);
  held.set_grant_id(use.grant.value);
  for (size_t index = 0; index < use.held.size(); ++index) {
    if (use.held[index] != 0) {
      v1::HandoverAmount& amount = *held.add_amounts();
      amount.set_resource(std::string(core::ResourceName(static_cast<core::Resource>(index))));
      amount.set_amount(use.held[index]);
    }
  }
  return held;
}

core::HeldUse FromWire(const v1::HandoverHeld& held) {
  core::HeldUse use{.tenant = held.tenant(),
                    .rule = held.rule(),
                    .pod_uid = held.pod_uid(),
                    .grant = GrantId{held.grant_id()},
                    .held = {}};
  for (const v1::HandoverAmount& amount : held.amounts()) {
    for (size_t index = 0; index < use.held.size(); ++index) {
      if (core::ResourceName(static_cast<core::Resource>(index)) == amount.resource()) {
        use.held[index] = amount.amount();
      }
    }
  }
  return use;
}

void AddTo(v1::HandoverContents& contents, const core::Inheritance& inheritance) {
  for (const core::ProcessKey& process : inheritance.processes) {
    *contents.add_processes() = ToWire(process);
  }
  for (const core::HeldUse& use : inheritance.held) {
    *contents.add_held() = ToWire(use);
  }
  for (const core::HandedGrant& grant : inheritance.grants) {
    v1::HandoverGrant& added = *contents.add_grants();
    *added.mutable_terms() = GrantToWire(grant);
    added.set_age_ms(grant.renewal.has_value() ? static_cast<uint64_t>(grant.renewal->age.count()) : 0);
  }
  for (const core::PodFacts& pod : inheritance.pods) {
    *contents.add_pods() = service::ToWire(pod);
  }
}

absl::StatusOr<core::Inheritance> InheritanceOf(const v1::HandoverContents& contents) {
  core::Inheritance inheritance;
  for (const v1::HandoverProcess& process : contents.processes()) {
    inheritance.processes.push_back(FromWire(process));
  }
  for (const v1::HandoverHeld& held : contents.held()) {
    inheritance.held.push_back(FromWire(held));
  }
  for (const v1::HandoverGrant& grant : contents.grants()) {
    RNICD_ASSIGN_OR_RETURN(core::GrantTerms terms, service::FromWire(grant.terms()));
    if (terms.renewal.has_value()) {
      terms.renewal->age = std::chrono::milliseconds(grant.age_ms());
    }
    inheritance.grants.push_back(std::move(terms));
  }
  v1::SetPodsRequest pods;
  *pods.mutable_pods() = contents.pods();
  RNICD_ASSIGN_OR_RETURN(inheritance.pods, service::FromWire(pods));
  return inheritance;
}

v1::HandoverFile FileOf(transport::Door door, GrantId grant) {
  v1::HandoverFile file;
  file.set_grant_id(grant.value);
  switch (door) {
    case transport::Door::kWorkload:
      file.set_kind(v1::HANDOVER_FILE_KIND_WORKLOADS);
      break;
    case transport::Door::kOperator:
      file.set_kind(v1::HANDOVER_FILE_KIND_OPERATORS);
      break;
    case transport::Door::kFd:
      file.set_kind(v1::HANDOVER_FILE_KIND_DESCRIPTORS);
      break;
  }
  return file;
}

transport::Door DoorOf(v1::HandoverFileKind kind) {
  switch (kind) {
    case v1::HANDOVER_FILE_KIND_OPERATORS:
      return transport::Door::kOperator;
    case v1::HANDOVER_FILE_KIND_DESCRIPTORS:
      return transport::Door::kFd;
    default:
      return transport::Door::kWorkload;
  }
}

}  // namespace rnicd::app
