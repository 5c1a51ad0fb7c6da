#include "daemon/policy/policy_rules.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/pod_uid.h"
#include "daemon/core/caller.h"
#include "daemon/policy/limits_wire.h"

namespace rnicd::policy {
namespace {

constexpr size_t kNameBytesMax = 63;
// The longest that Kubernetes knows: a label's key with its prefix.
constexpr size_t kPodTextBytesMax = 317;
// What the kernel takes for "none" in place of a uid or gid.
constexpr uint32_t kNobody = UINT32_MAX;

bool IsTenantName(std::string_view name) {
  return !name.empty() && name.size() <= kNameBytesMax && std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_islower(static_cast<unsigned char>(c)) || absl::ascii_isdigit(static_cast<unsigned char>(c)) ||
           c == '-' || c == '_' || c == '.';
  });
}

bool IsPodText(std::string_view text) {
  return text.size() <= kPodTextBytesMax && std::all_of(text.begin(), text.end(), [](char c) {
           return absl::ascii_isprint(static_cast<unsigned char>(c));
         });
}

void JudgePodText(const std::string& what, std::string_view text, int line, Complaints& complaints) {
  if (text.empty()) {
    complaints.Add(line, absl::StrCat(what, " is empty: no pod has that"));
  } else if (!IsPodText(text)) {
    complaints.Add(line, absl::StrCat(what, " must be at most ", kPodTextBytesMax, " printable ASCII characters"));
  }
}

void JudgeLabels(const v1::CallerMatch& match, const Place& place, Complaints& complaints) {
  std::set<std::string_view> keys;
  for (int index = 0; index < match.pod_label_size(); ++index) {
    const v1::PodLabel& label = match.pod_label(index);
    const Place here = place.In(v1::CallerMatch::kPodLabelFieldNumber, index, match.pod_label_size());
    JudgePodText("the key of pod_label", label.key(), here.LineOf(v1::PodLabel::kKeyFieldNumber), complaints);
    if (!keys.insert(label.key()).second) {
      complaints.Add(here.line(), absl::StrCat("pod_label \"", label.key(), "\" stands twice in one match"));
    }
    // A label's value may be empty; one that was left out is rather forgotten than meant so.
    if (!here.Has(v1::PodLabel::kValueFieldNumber)) {
      complaints.Add(here.line(), "pod_label needs a value; write value: \"\" for an empty one");
    } else if (!IsPodText(label.value())) {
      JudgePodText("the value of pod_label", label.value(), here.LineOf(v1::PodLabel::kValueFieldNumber), complaints);
    }
  }
}

// An empty text would be no condition at all, and the match wider than it looks.
void JudgeMatch(const v1::CallerMatch& match, const Place& place, Complaints& complaints) {
  using v1::CallerMatch;
  const bool has_pod_uid = place.Has(CallerMatch::kPodUidFieldNumber);
  const bool has_namespace = place.Has(CallerMatch::kPodNamespaceFieldNumber);
  if (!match.has_uid() && !match.has_gid() && !has_pod_uid && !has_namespace && match.pod_label().empty()) {
    complaints.Add(place.line(), "an empty match matches nobody: give at least one condition");
  }
  if (match.has_uid() && match.uid() == kNobody) {
    complaints.Add(place.LineOf(CallerMatch::kUidFieldNumber), absl::StrCat(kNobody, " is nobody's uid"));
  }
  if (match.has_gid() && match.gid() == kNobody) {
    complaints.Add(place.LineOf(CallerMatch::kGidFieldNumber), absl::StrCat(kNobody, " is nobody's gid"));
  }
  if (has_pod_uid && !IsPodUid(match.pod_uid())) {
    complaints.Add(place.LineOf(CallerMatch::kPodUidFieldNumber),
                   "pod_uid must be lower-case hexadecimal digits: 8-4-4-4-12 with dashes, or 32");
  }
  if (has_namespace) {
    JudgePodText("pod_namespace", match.pod_namespace(), place.LineOf(CallerMatch::kPodNamespaceFieldNumber),
                 complaints);
  }
  JudgeLabels(match, place, complaints);
}

void JudgeLimits(const v1::TenantPolicy& tenant, const Place& place, Complaints& complaints) {
  const Place limits = place.In(v1::TenantPolicy::kLimitsFieldNumber);
  for (const LimitsProblem& problem : ProblemsOf(tenant.limits())) {
    complaints.Add(limits.LineOf(problem.field), absl::StrCat("limits.", problem.field, " ", problem.what));
  }
  const Place session = place.In(v1::TenantPolicy::kSessionLimitsFieldNumber);
  const auto complain = [&](const std::vector<LimitsProblem>& problems) {
    for (const LimitsProblem& problem : problems) {
      complaints.Add(session.LineOf(problem.field), absl::StrCat("session_limits.", problem.field, " ", problem.what));
    }
  };
  complain(ProblemsOf(tenant.session_limits()));
  complain(ProblemsOfSession(tenant.session_limits(), tenant.limits()));
}

void JudgeTenant(const v1::TenantPolicy& tenant, bool is_default, const Place& place, Complaints& complaints) {
  const int name_line = place.LineOf(v1::TenantPolicy::kNameFieldNumber);
  if (tenant.name().empty()) {
    complaints.Add(name_line, "a tenant needs a name");
  } else if (!IsTenantName(tenant.name())) {
    complaints.Add(name_line, absl::StrCat("a tenant's name must be 1 to ", kNameBytesMax,
                                           " characters of a to z, 0 to 9, \"-\", \"_\" and \".\""));
  }
  if (tenant.match().empty() && !is_default) {
    complaints.Add(place.line(), "nobody can be of this tenant: it has no match and is not the default_tenant");
  }
  for (int index = 0; index < tenant.match_size(); ++index) {
    JudgeMatch(tenant.match(index), place.In(v1::TenantPolicy::kMatchFieldNumber, index, tenant.match_size()),
               complaints);
  }
  JudgeLimits(tenant, place, complaints);
}

void JudgeRole(const v1::RolePolicy& role, const Place& place, Complaints& complaints) {
  if (role.role() == v1::CALLER_ROLE_UNSPECIFIED) {
    complaints.Add(place.LineOf(v1::RolePolicy::kRoleFieldNumber),
                   "a role needs its role: CALLER_ROLE_OPERATOR or CALLER_ROLE_DEVICE_PLUGIN");
  }
  if (!role.has_match()) {
    complaints.Add(place.line(), "a role needs a match");
  } else {
    const Place match = place.In(v1::RolePolicy::kMatchFieldNumber);
    JudgeMatch(role.match(), match, complaints);
    // The device plugin says what these are, and could make itself an operator.
    if (!role.match().pod_namespace().empty() || !role.match().pod_label().empty()) {
      complaints.Add(match.line(), "a role cannot hang on pod_namespace or pod_label, which SetPods says; use pod_uid");
    }
  }
}

}  // namespace

void JudgePolicy(const v1::Policy& policy, const Place& place, Complaints& complaints) {
  // Each name and the line that has it first.
  std::map<std::string_view, int> names;
  for (int index = 0; index < policy.tenant_size(); ++index) {
    const v1::TenantPolicy& tenant = policy.tenant(index);
    const Place here = place.In(v1::Policy::kTenantFieldNumber, index, policy.tenant_size());
    JudgeTenant(tenant, !tenant.name().empty() && tenant.name() == policy.default_tenant(), here, complaints);
    const int line = here.LineOf(v1::TenantPolicy::kNameFieldNumber);
    const auto [first, is_first] = names.emplace(tenant.name(), line);
    if (!is_first && !tenant.name().empty()) {
      complaints.Add(line, absl::StrCat("tenant \"", tenant.name(), "\" stands in line ", first->second, " already"));
    }
  }
  if (!policy.default_tenant().empty() && names.count(policy.default_tenant()) == 0) {
    complaints.Add(place.LineOf(v1::Policy::kDefaultTenantFieldNumber),
                   absl::StrCat("default_tenant \"", policy.default_tenant(), "\" is no tenant of this file"));
  }
  for (int index = 0; index < policy.role_size(); ++index) {
    JudgeRole(policy.role(index), place.In(v1::Policy::kRoleFieldNumber, index, policy.role_size()), complaints);
  }
}

}  // namespace rnicd::policy
