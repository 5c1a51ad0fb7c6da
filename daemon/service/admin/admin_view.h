#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/core/request/node.h"
#include "daemon/core/session/session_registry.h"
#include "daemon/service/admin/admin_process.h"
#include "rnicd/v1/admin_service.pb.h"

namespace rnicd::service {

// The state of the node as wire messages for operators, without tokens, tickets and secrets.
// Lifetime: everything it is given outlives it.
// Threads:  safe.
class AdminView {
 public:
  AdminView(const core::Node& node, const core::SessionRegistry& registry, const ProcessControl& process)
      : node_(node), registry_(registry), process_(process) {}

  v1::GetStatusResponse Status() const;
  // Sorted by name.
  std::vector<v1::TenantInfo> Tenants() const;
  // Sorted by id.
  std::vector<v1::GrantInfo> Grants() const;
  // The pods of the latest SetPods.
  std::vector<v1::PodInfo> Pods() const;
  // Errors: SESSION_NOT_FOUND.
  absl::StatusOr<v1::InspectSessionResponse> Inspect(SessionId id) const;
  v1::StateDump Dump() const;

  v1::SessionInfo Session(const core::SessionRegistry::Listed& listed) const;
  // Sorted by id.
  static std::vector<v1::RegionInfo> Regions(const core::Session& session);
  static std::vector<v1::ListenerInfo> Listeners(const core::Session& session);
  std::vector<v1::ConnectionInfo> Connections(const core::Session& session) const;

 private:
  // In the provider's order.
  std::vector<v1::AdapterStatus> Adapters() const;
  uint64_t MillisecondsSince(Instant instant) const;
  v1::GrantInfo Grant(const core::GrantView& grant) const;

  const core::Node& node_;
  const core::SessionRegistry& registry_;
  const ProcessControl& process_;
};

}  // namespace rnicd::service
