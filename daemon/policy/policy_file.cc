#include "daemon/policy/policy_file.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/files/safe_file.h"
#include "base/status.h"
#include "daemon/policy/connections_wire.h"
#include "daemon/policy/limits_wire.h"
#include "daemon/policy/policy_rules.h"
#include "daemon/policy/strict_text.h"
#include "rnicd/v1/policy.pb.h"

namespace rnicd::policy {
namespace {

core::Matcher MatcherFromWire(const v1::CallerMatch& wire) {
  core::Matcher matcher;
  if (wire.has_uid()) {
    matcher.uid = wire.uid();
  }
  if (wire.has_gid()) {
    matcher.gid = wire.gid();
  }
  if (!wire.pod_uid().empty()) {
    matcher.pod_uid = wire.pod_uid();
  }
  if (!wire.pod_namespace().empty()) {
    matcher.pod_namespace = wire.pod_namespace();
  }
  if (!wire.sid().empty()) {
    matcher.sid = wire.sid();
  }
  for (const v1::PodLabel& label : wire.pod_label()) {
    matcher.pod_labels.emplace(label.key(), label.value());
  }
  return matcher;
}

core::Sharing SharingFromWire(v1::Sharing sharing) {
  switch (sharing) {
    case v1::SHARING_EACH_UID:
      return core::Sharing::kEachUid;
    case v1::SHARING_EACH_POD:
      return core::Sharing::kEachPod;
    default:
      return core::Sharing::kOne;
  }
}

core::TenantRule TenantFromWire(const v1::TenantPolicy& wire) {
  core::TenantRule rule;
  rule.name = wire.name();
  for (const v1::CallerMatch& match : wire.match()) {
    rule.matches.push_back(MatcherFromWire(match));
  }
  rule.sharing = SharingFromWire(wire.sharing());
  rule.limits = {.tenant = FromWire(wire.limits()),
                 .session = FromWire(wire.session_limits()),
                 .tenant_rate = RateFromWire(wire.limits()),
                 .session_rate = RateFromWire(wire.session_limits()),
                 .connections = FromWire(wire.connections())};
  return rule;
}

core::Policy PolicyFromWire(const v1::Policy& wire) {
  core::Policy policy;
  for (const v1::TenantPolicy& tenant : wire.tenant()) {
    policy.tenants.push_back(TenantFromWire(tenant));
  }
  policy.default_tenant = wire.default_tenant();
  for (const v1::RolePolicy& role : wire.role()) {
    policy.roles.push_back(
        {.match = MatcherFromWire(role.match()),
         .role = role.role() == v1::CALLER_ROLE_DEVICE_PLUGIN ? core::Role::kDevicePlugin : core::Role::kOperator});
  }
  for (const v1::CallerMatch& match : wire.door()) {
    policy.doors.push_back(MatcherFromWire(match));
  }
  return policy;
}

// False, with an error, for bytes that the parser must not see.
bool IsText(std::string_view text, ParseErrors& errors) {
  if (text.size() > kPolicyBytesMax) {
    errors.Add(1, absl::StrCat("the file is longer than ", kPolicyBytesMax, " bytes"));
    return false;
  }
  const size_t nul = text.find('\0');
  if (nul != std::string_view::npos) {
    const auto newlines = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(nul), '\n');
    errors.Add(static_cast<int>(newlines) + 1, "contains a NUL byte");
    return false;
  }
  return true;
}

}  // namespace

absl::StatusOr<core::Policy> ParsePolicy(std::string_view text, std::string_view file_name) {
  // Some editors begin a file with it.
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  text.remove_prefix(text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0);
  ParseErrors errors;
  v1::Policy wire;
  google::protobuf::TextFormat::ParseInfoTree tree;
  if (IsText(text, errors) && ReadStrictly(text, wire, tree, errors)) {
    ValidatePolicy(wire, SourceLocation(v1::Policy::descriptor(), &tree), errors);
  }
  if (!errors.empty()) {
    return errors.ToStatus(file_name);
  }
  return PolicyFromWire(wire);
}

absl::StatusOr<core::Policy> LoadPolicy(const std::string& path) {
  // Kubernetes mounts a ConfigMap's files as links.
  RNICD_ASSIGN_OR_RETURN(const std::string text,
                         ReadSafeFile(path, {.bytes_max = kPolicyBytesMax, .follow_link = true}));
  return ParsePolicy(text, path);
}

}  // namespace rnicd::policy
