#include "daemon/service/admin_grants.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "daemon/core/caller.h"
#include "daemon/policy/limits_wire.h"

namespace rnicd::service {
namespace {

constexpr std::chrono::milliseconds kLongestLifetime = std::chrono::years(10);

// As long as Kubernetes allows: names of pods and namespaces, and labels, whose keys may have a DNS name and a slash in
// front.
constexpr int kPodsMax = 10'000;
constexpr int kLabelsMax = 64;
constexpr size_t kNamespaceBytesMax = 63;
constexpr size_t kPodNameBytesMax = 253;
constexpr size_t kLabelKeyBytesMax = 317;
constexpr size_t kLabelValueBytesMax = 63;

bool IsText(std::string_view text, size_t most) {
  const auto printable = [](char c) { return c >= ' ' && c <= '~'; };
  return text.size() <= most && std::all_of(text.begin(), text.end(), printable);
}

absl::Status OutOfRange(const std::string& field) { return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, field); }

std::string At(const std::string& list, int index) { return list + "[" + std::to_string(index) + "]"; }

absl::StatusOr<core::PodFacts> PodFromWire(const v1::PodInfo& pod, const std::string& field) {
  if (!core::IsPodUid(pod.uid())) {
    return OutOfRange(field + ".uid");
  }
  if (!IsText(pod.namespace_(), kNamespaceBytesMax)) {
    return OutOfRange(field + ".namespace");
  }
  if (!IsText(pod.name(), kPodNameBytesMax)) {
    return OutOfRange(field + ".name");
  }
  if (pod.labels_size() > kLabelsMax) {
    return OutOfRange(field + ".labels");
  }
  core::PodFacts facts{.uid = pod.uid(), .namespace_name = pod.namespace_(), .name = pod.name()};
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
  return facts;
}

}  // namespace

absl::StatusOr<core::GrantTerms> FromWire(const v1::CreateGrantRequest& request) {
  if (!request.pod_uid().empty() && !core::IsPodUid(request.pod_uid())) {
    return OutOfRange("pod_uid");
  }
  if (request.lifetime_ms() > static_cast<uint64_t>(kLongestLifetime.count())) {
    return OutOfRange("lifetime_ms");
  }
  RNICD_RETURN_IF_ERROR(policy::CheckLimits(request.limits(), "limits"));
  RNICD_RETURN_IF_ERROR(policy::CheckSessionLimits(request.session_limits(), request.limits(), "session_limits"));
  return core::GrantTerms{.name = request.name(),
                          .pod_uid = request.pod_uid(),
                          .lifetime = std::chrono::milliseconds(request.lifetime_ms()),
                          .limits = {.tenant = policy::FromWire(request.limits()),
                                     .session = policy::FromWire(request.session_limits()),
                                     .tenant_rate = policy::RateFromWire(request.limits()),
                                     .session_rate = policy::RateFromWire(request.session_limits())}};
}

absl::StatusOr<std::vector<core::PodFacts>> FromWire(const v1::SetPodsRequest& request) {
  if (request.pods_size() > kPodsMax) {
    return OutOfRange("pods");
  }
  std::vector<core::PodFacts> pods;
  std::set<std::string_view> uids;
  for (int index = 0; index < request.pods_size(); ++index) {
    const std::string field = At("pods", index);
    if (!uids.insert(request.pods(index).uid()).second) {
      return OutOfRange(field + ".uid");
    }
    RNICD_ASSIGN_OR_RETURN(core::PodFacts pod, PodFromWire(request.pods(index), field));
    pods.push_back(std::move(pod));
  }
  return pods;
}

}  // namespace rnicd::service
