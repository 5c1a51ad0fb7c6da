#include "daemon/service/admin/admin_grants.h"

#include <chrono>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/pod_uid.h"
#include "base/secrets/secret.h"
#include "base/status.h"
#include "daemon/core/tenant/caller.h"
#include "daemon/policy/connections_wire.h"
#include "daemon/policy/limits_wire.h"
#include "daemon/service/messages/field_checks.h"
#include "daemon/service/messages/workload_wire.h"

namespace rnicd::service {
namespace {

constexpr std::chrono::milliseconds kLongestLifetime = std::chrono::years(10);

// Limits of Kubernetes for names of pods and namespaces, and for labels, whose keys may have a prefix of a DNS name and
// a slash.
constexpr int kPodsMax = 10'000;
constexpr int kLabelsMax = 64;
constexpr int kContainersMax = 1000;
constexpr size_t kNamespaceBytesMax = 63;
constexpr size_t kPodNameBytesMax = 253;
constexpr size_t kLabelKeyBytesMax = 317;
constexpr size_t kLabelValueBytesMax = 63;

absl::StatusOr<core::GrantRenewal> RenewalFromWire(const v1::GrantRenewal& renewal, bool door) {
  if (renewal.grant_id() == 0) {
    return OutOfRange("renewal.grant_id");
  }
  if (door && renewal.secret_sha256().empty()) {
    return core::GrantRenewal{.id = {renewal.grant_id()}, .digest = std::nullopt};
  }
  const std::string& digest = renewal.secret_sha256();
  if (door || digest.size() != SecretDigest::kBytes) {
    return OutOfRange("renewal.secret_sha256");
  }
  return core::GrantRenewal{.id = {renewal.grant_id()},
                            .digest = SecretDigest::FromBytes(std::span<const uint8_t, SecretDigest::kBytes>(
                                reinterpret_cast<const uint8_t*>(digest.data()), SecretDigest::kBytes))};
}

absl::Status CheckPodNames(const v1::PodInfo& pod, const std::string& field) {
  if (!IsText(pod.namespace_(), kNamespaceBytesMax) || (pod.namespace_().empty() && !pod.name().empty())) {
    return OutOfRange(field + ".namespace");
  }
  if (!IsText(pod.name(), kPodNameBytesMax) || (pod.name().empty() && !pod.namespace_().empty())) {
    return OutOfRange(field + ".name");
  }
  // A pod without any name would match nothing.
  if (pod.uid().empty() ? pod.name().empty() : !IsPodUid(pod.uid())) {
    return OutOfRange(field + ".uid");
  }
  return absl::OkStatus();
}

absl::Status TakeLabels(const v1::PodInfo& pod, const std::string& field, core::PodFacts& facts) {
  if (pod.labels_size() > kLabelsMax) {
    return OutOfRange(field + ".labels");
  }
  for (int index = 0; index < pod.labels_size(); ++index) {
    const v1::PodLabel& label = pod.labels(index);
    const std::string label_field = At(field + ".labels", index);
    const bool key_is_good = !label.key().empty() && IsText(label.key(), kLabelKeyBytesMax);
    if (!key_is_good || !facts.labels.emplace(label.key(), label.value()).second) {
      return OutOfRange(label_field + ".key");
    }
    if (!IsText(label.value(), kLabelValueBytesMax)) {
      return OutOfRange(label_field + ".value");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<core::PodFacts> PodFromWire(const v1::PodInfo& pod, const std::string& field) {
  RNICD_RETURN_IF_ERROR(CheckPodNames(pod, field));
  core::PodFacts facts{.uid = pod.uid(), .namespace_name = pod.namespace_(), .name = pod.name()};
  RNICD_RETURN_IF_ERROR(TakeLabels(pod, field, facts));
  if (pod.containers_size() > kContainersMax) {
    return OutOfRange(field + ".containers");
  }
  for (int index = 0; index < pod.containers_size(); ++index) {
    RNICD_ASSIGN_OR_RETURN(core::ContainerFacts container,
                           ContainerFromWire(pod.containers(index), At(field + ".containers", index)));
    facts.containers.push_back(std::move(container));
  }
  return facts;
}

}  // namespace

absl::StatusOr<core::GrantTerms> FromWire(const v1::CreateGrantRequest& request) {
  if (!request.pod_uid().empty() && !IsPodUid(request.pod_uid())) {
    return OutOfRange("pod_uid");
  }
  if (request.lifetime_ms() > static_cast<uint64_t>(kLongestLifetime.count())) {
    return OutOfRange("lifetime_ms");
  }
  RNICD_RETURN_IF_ERROR(policy::CheckLimits(request.limits(), "limits"));
  RNICD_RETURN_IF_ERROR(policy::CheckSessionLimits(request.session_limits(), request.limits(), "session_limits"));
  RNICD_RETURN_IF_ERROR(policy::CheckConnections(request.connections(), "connections"));
  core::GrantTerms terms{.name = request.name(),
                         .pod_uid = request.pod_uid(),
                         .lifetime = std::chrono::milliseconds(request.lifetime_ms()),
                         .limits = {.tenant = policy::FromWire(request.limits()),
                                    .session = policy::FromWire(request.session_limits()),
                                    .tenant_rate = policy::RateFromWire(request.limits()),
                                    .session_rate = policy::RateFromWire(request.session_limits()),
                                    .connections = policy::FromWire(request.connections())},
                         .door = request.door()};
  if (request.has_renewal()) {
    RNICD_ASSIGN_OR_RETURN(terms.renewal, RenewalFromWire(request.renewal(), request.door()));
  }
  if (request.has_devices()) {
    RNICD_ASSIGN_OR_RETURN(core::DeviceSet devices, DevicesFromWire(request.devices(), "devices"));
    terms.devices = std::make_shared<const core::DeviceSet>(std::move(devices));
  }
  return terms;
}

absl::StatusOr<std::vector<core::PodFacts>> FromWire(const v1::SetPodsRequest& request) {
  if (request.pods_size() > kPodsMax) {
    return OutOfRange("pods");
  }
  std::vector<core::PodFacts> pods;
  std::set<std::string_view> uids;
  std::set<std::pair<std::string_view, std::string_view>> names;
  for (int index = 0; index < request.pods_size(); ++index) {
    const v1::PodInfo& info = request.pods(index);
    const std::string field = At("pods", index);
    if (!info.uid().empty() && !uids.insert(info.uid()).second) {
      return OutOfRange(field + ".uid");
    }
    if (!info.name().empty() && !names.insert({info.namespace_(), info.name()}).second) {
      return OutOfRange(field + ".name");
    }
    RNICD_ASSIGN_OR_RETURN(core::PodFacts pod, PodFromWire(info, field));
    pods.push_back(std::move(pod));
  }
  return pods;
}

}  // namespace rnicd::service
