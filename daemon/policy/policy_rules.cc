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
#include "base/sid.h"
#include "daemon/core/tenant/caller.h"
#include "daemon/core/tenant/tenant_tally.h"
#include "daemon/policy/connections_wire.h"
#include "daemon/policy/limits_wire.h"

namespace rnicd::policy {
namespace {

constexpr size_t kNameBytesMax = 63;
// The longest text in Kubernetes: a label's key with its prefix.
constexpr size_t kPodTextBytesMax = 317;
// The kernel's value for "none" in location of a uid or gid.
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

void ValidatePodText(const std::string& what, std::string_view text, int line, ParseErrors& errors) {
  if (text.empty()) {
    errors.Add(line, absl::StrCat(what, " is empty: no pod has that"));
  } else if (!IsPodText(text)) {
    errors.Add(line, absl::StrCat(what, " must be at most ", kPodTextBytesMax, " printable ASCII characters"));
  }
}

void ValidateLabels(const v1::CallerMatch& match, const SourceLocation& location, ParseErrors& errors) {
  std::set<std::string_view> keys;
  for (int index = 0; index < match.pod_label_size(); ++index) {
    const v1::PodLabel& label = match.pod_label(index);
    const SourceLocation here = location.In(v1::CallerMatch::kPodLabelFieldNumber, index, match.pod_label_size());
    ValidatePodText("the key of pod_label", label.key(), here.LineOf(v1::PodLabel::kKeyFieldNumber), errors);
    if (!keys.insert(label.key()).second) {
      errors.Add(here.line(), absl::StrCat("pod_label \"", label.key(), "\" appears twice in one match"));
    }
    // A label's value may be empty; a missing one is more likely forgotten than intended.
    if (!here.Has(v1::PodLabel::kValueFieldNumber)) {
      errors.Add(here.line(), "pod_label needs a value; write value: \"\" for an empty one");
    } else if (!IsPodText(label.value())) {
      ValidatePodText("the value of pod_label", label.value(), here.LineOf(v1::PodLabel::kValueFieldNumber), errors);
    }
  }
}

// An empty text would not be a condition, and the match wider than it looks.
void ValidateMatch(const v1::CallerMatch& match, const SourceLocation& location, ParseErrors& errors) {
  using v1::CallerMatch;
  const bool has_pod_uid = location.Has(CallerMatch::kPodUidFieldNumber);
  const bool has_namespace = location.Has(CallerMatch::kPodNamespaceFieldNumber);
  const bool has_sid = location.Has(CallerMatch::kSidFieldNumber);
  if (!match.has_uid() && !match.has_gid() && !has_pod_uid && !has_namespace && !has_sid && match.pod_label().empty()) {
    errors.Add(location.line(), "an empty match matches no caller: give at least one condition");
  }
  if (match.has_uid() && match.uid() == kNobody) {
    errors.Add(location.LineOf(CallerMatch::kUidFieldNumber), absl::StrCat(kNobody, " is nobody's uid"));
  }
  if (match.has_gid() && match.gid() == kNobody) {
    errors.Add(location.LineOf(CallerMatch::kGidFieldNumber), absl::StrCat(kNobody, " is nobody's gid"));
  }
  if (has_pod_uid && !IsPodUid(match.pod_uid())) {
    errors.Add(location.LineOf(CallerMatch::kPodUidFieldNumber),
               "pod_uid must be lower-case hexadecimal digits: 8-4-4-4-12 with dashes, or 32");
  }
  if (has_namespace) {
    ValidatePodText("pod_namespace", match.pod_namespace(), location.LineOf(CallerMatch::kPodNamespaceFieldNumber),
                    errors);
  }
  if (has_sid && !IsSid(match.sid())) {
    errors.Add(location.LineOf(CallerMatch::kSidFieldNumber),
               "sid must be a security identifier in decimal, such as S-1-5-32-545");
  }
  ValidateLabels(match, location, errors);
}

void ValidateLimits(const v1::TenantPolicy& tenant, const SourceLocation& location, ParseErrors& errors) {
  const SourceLocation limits = location.In(v1::TenantPolicy::kLimitsFieldNumber);
  for (const LimitsProblem& problem : ProblemsOf(tenant.limits())) {
    errors.Add(limits.LineOf(problem.field), absl::StrCat("limits.", problem.field, " ", problem.what));
  }
  const SourceLocation session = location.In(v1::TenantPolicy::kSessionLimitsFieldNumber);
  const auto add_errors = [&](const std::vector<LimitsProblem>& problems) {
    for (const LimitsProblem& problem : problems) {
      errors.Add(session.LineOf(problem.field), absl::StrCat("session_limits.", problem.field, " ", problem.what));
    }
  };
  add_errors(ProblemsOf(tenant.session_limits()));
  add_errors(ProblemsOfSession(tenant.session_limits(), tenant.limits()));
}

void ValidateConnections(const v1::TenantPolicy& tenant, const SourceLocation& location, ParseErrors& errors) {
  const auto size_of = [&](const ConnectionsProblem& problem) {
    const auto* const list = v1::ConnectionPolicy::descriptor()->FindFieldByNumber(problem.list);
    return v1::ConnectionPolicy::GetReflection()->FieldSize(tenant.connections(), list);
  };
  for (const ConnectionsProblem& problem : ProblemsOf(tenant.connections())) {
    const SourceLocation range =
        location.In(v1::TenantPolicy::kConnectionsFieldNumber).In(problem.list, problem.index, size_of(problem));
    const int line = problem.field.empty() ? range.line() : range.LineOf(problem.field);
    errors.Add(line, absl::StrCat("connections.", problem.Path(), " ", problem.what));
  }
}

void ValidateTenant(const v1::TenantPolicy& tenant, bool is_default, const SourceLocation& location,
                    ParseErrors& errors) {
  const int name_line = location.LineOf(v1::TenantPolicy::kNameFieldNumber);
  if (tenant.name().empty()) {
    errors.Add(name_line, "a tenant needs a name");
  } else if (!IsTenantName(tenant.name())) {
    errors.Add(name_line, absl::StrCat("a tenant's name must be 1 to ", kNameBytesMax,
                                       " characters of a to z, 0 to 9, \"-\", \"_\" and \".\""));
  } else if (tenant.name() == core::kOtherTenants) {
    errors.Add(name_line, absl::StrCat("a tenant's name cannot be \"", core::kOtherTenants,
                                       "\": metrics use it for all tenants without a name of their own"));
  }
  if (tenant.match().empty() && !is_default) {
    errors.Add(location.line(), "no caller can match this tenant: it has no match and is not the default_tenant");
  }
  for (int index = 0; index < tenant.match_size(); ++index) {
    ValidateMatch(tenant.match(index), location.In(v1::TenantPolicy::kMatchFieldNumber, index, tenant.match_size()),
                  errors);
  }
  ValidateLimits(tenant, location, errors);
  ValidateConnections(tenant, location, errors);
}

void ValidateRole(const v1::RolePolicy& role, const SourceLocation& location, ParseErrors& errors) {
  if (role.role() == v1::CALLER_ROLE_UNSPECIFIED) {
    errors.Add(location.LineOf(v1::RolePolicy::kRoleFieldNumber),
               "a role needs its role: CALLER_ROLE_OPERATOR or CALLER_ROLE_DEVICE_PLUGIN");
  }
  if (!role.has_match()) {
    errors.Add(location.line(), "a role needs a match");
  } else {
    const SourceLocation match = location.In(v1::RolePolicy::kMatchFieldNumber);
    ValidateMatch(role.match(), match, errors);
    // The device plugin sets these, and could make itself an operator.
    if (!role.match().pod_namespace().empty() || !role.match().pod_label().empty()) {
      errors.Add(match.line(), "a role cannot depend on pod_namespace or pod_label, which SetPods sets; use pod_uid");
    }
  }
}

}  // namespace

void ValidatePolicy(const v1::Policy& policy, const SourceLocation& location, ParseErrors& errors) {
  // More likely a truncated file, for example after a full disk, than the intention to refuse all callers.
  if (policy.tenant().empty() && policy.role().empty()) {
    errors.Add(1, "the file has neither a tenant nor a role; with a role alone only grants let callers in");
  }
  // Each name with the line of its first use.
  std::map<std::string_view, int> names;
  for (int index = 0; index < policy.tenant_size(); ++index) {
    const v1::TenantPolicy& tenant = policy.tenant(index);
    const SourceLocation here = location.In(v1::Policy::kTenantFieldNumber, index, policy.tenant_size());
    ValidateTenant(tenant, !tenant.name().empty() && tenant.name() == policy.default_tenant(), here, errors);
    const int line = here.LineOf(v1::TenantPolicy::kNameFieldNumber);
    const auto [first, is_first] = names.emplace(tenant.name(), line);
    if (!is_first && !tenant.name().empty()) {
      errors.Add(line, absl::StrCat("tenant \"", tenant.name(), "\" is already defined in line ", first->second));
    }
  }
  if (!policy.default_tenant().empty() && !names.contains(policy.default_tenant())) {
    errors.Add(location.LineOf(v1::Policy::kDefaultTenantFieldNumber),
               absl::StrCat("default_tenant \"", policy.default_tenant(), "\" is not a tenant of this file"));
  }
  for (int index = 0; index < policy.role_size(); ++index) {
    ValidateRole(policy.role(index), location.In(v1::Policy::kRoleFieldNumber, index, policy.role_size()), errors);
  }
  for (int index = 0; index < policy.door_size(); ++index) {
    ValidateMatch(policy.door(index), location.In(v1::Policy::kDoorFieldNumber, index, policy.door_size()), errors);
  }
}

}  // namespace rnicd::policy
