#include "daemon/door/refusal.h"

#include <string>

#include "daemon/core/tenant/observation.h"

namespace rnicd::door {
namespace {

absl::StatusCode CodeOf(std::string_view refusal) {
  if (refusal == core::kRefusedIdentity) {
    return absl::StatusCode::kUnauthenticated;
  }
  if (refusal == core::kRefusedRole) {
    return absl::StatusCode::kPermissionDenied;
  }
  return refusal == core::kRefusedSilent ? absl::StatusCode::kDeadlineExceeded : absl::StatusCode::kResourceExhausted;
}

}  // namespace

Refusal RefusalOfIdentity(const absl::Status& cause) {
  return {.reason = absl::IsResourceExhausted(cause) ? core::kRefusedNoDescriptors : core::kRefusedIdentity,
          .cause = cause};
}

void CountRefusal(core::Node& node, std::string_view reason, core::Tenant* tenant) {
  node.observer.Report(core::ConnectionRefused{reason});
  if (tenant != nullptr) {
    tenant->door().Refused();
  }
}

void ReportRefusal(core::Node& node, const log::Logger& logger, const Refusal& refusal, const core::Caller* caller,
                   core::Tenant* tenant) {
  const auto& [reason, cause] = refusal;
  CountRefusal(node, reason, tenant);
  core::Decision decision;
  decision.what = "connection";
  decision.caller = caller;
  decision.status = cause.ok() ? absl::Status(CodeOf(reason), "refused at accept") : cause;
  decision.note = reason;
  if (tenant != nullptr) {
    decision.tenant = tenant->name();
    decision.workload = tenant->workload();
  }
  node.observer.Report(decision);
  logger.Debug("connection refused", {{"reason", reason}, {"cause", std::string(decision.status.message())}});
}

}  // namespace rnicd::door
