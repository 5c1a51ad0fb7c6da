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

void ReportRefusal(core::Node& node, const log::Logger& logger, const Refusal& refusal, const core::Caller* caller) {
  const auto& [reason, cause] = refusal;
  node.observer.Report(core::ConnectionRefused{reason});
  core::Decision decision;
  decision.what = "connection";
  decision.caller = caller;
  decision.status = cause.ok() ? absl::Status(CodeOf(reason), "refused at accept") : cause;
  decision.note = reason;
  node.observer.Report(decision);
  logger.Debug("connection refused", {{"reason", reason}, {"cause", std::string(decision.status.message())}});
}

}  // namespace rnicd::door
