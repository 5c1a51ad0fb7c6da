#include "tests/fuzz/policy_text.h"

#include <google/protobuf/text_format.h>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "daemon/policy/connections_wire.h"
#include "daemon/policy/limits_wire.h"

namespace rnicd::fuzz {
namespace {

std::string Quoted(std::string_view text) {
  return "\"" + absl::CHexEscape(absl::string_view(text.data(), text.size())) + "\"";
}

std::string MatchText(const core::Matcher& match) {
  std::string text = " {";
  if (match.uid.has_value()) {
    absl::StrAppend(&text, " uid: ", *match.uid);
  }
  if (match.gid.has_value()) {
    absl::StrAppend(&text, " gid: ", *match.gid);
  }
  if (match.pod_uid.has_value()) {
    absl::StrAppend(&text, " pod_uid: ", Quoted(*match.pod_uid));
  }
  if (match.pod_namespace.has_value()) {
    absl::StrAppend(&text, " pod_namespace: ", Quoted(*match.pod_namespace));
  }
  for (const auto& [key, value] : match.pod_labels) {
    absl::StrAppend(&text, " pod_label { key: ", Quoted(key), " value: ", Quoted(value), " }");
  }
  return text + " }";
}

std::string MessageText(const google::protobuf::Message& message) {
  google::protobuf::TextFormat::Printer printer;
  printer.SetSingleLineMode(true);
  std::string text;
  printer.PrintToString(message, &text);
  return absl::StrCat(" { ", text, "}");
}

std::string LimitsText(const core::Limits& limits, const core::Rate& rate) {
  return MessageText(policy::ToWire(limits, rate));
}

const char* SharingName(core::Sharing sharing) {
  switch (sharing) {
    case core::Sharing::kOne:
      return "SHARING_ONE_TENANT";
    case core::Sharing::kEachUid:
      return "SHARING_EACH_UID";
    case core::Sharing::kEachPod:
      return "SHARING_EACH_POD";
  }
  return "";
}

std::string TenantText(const core::TenantRule& rule) {
  std::string text = absl::StrCat("tenant {\n  name: ", Quoted(rule.name), "\n");
  for (const core::Matcher& match : rule.matches) {
    absl::StrAppend(&text, "  match", MatchText(match), "\n");
  }
  absl::StrAppend(&text, "  sharing: ", SharingName(rule.sharing), "\n");
  absl::StrAppend(&text, "  limits", LimitsText(rule.limits.tenant, rule.limits.tenant_rate), "\n");
  absl::StrAppend(&text, "  session_limits", LimitsText(rule.limits.session, rule.limits.session_rate), "\n");
  absl::StrAppend(&text, "  connections", MessageText(policy::ToWire(rule.limits.connections)), "\n");
  return text + "}\n";
}

std::string RoleText(const core::RoleRule& rule) {
  const bool is_plugin = rule.role == core::Role::kDevicePlugin;
  return absl::StrCat("role { match", MatchText(rule.match),
                      " role: ", is_plugin ? "CALLER_ROLE_DEVICE_PLUGIN" : "CALLER_ROLE_OPERATOR", " }\n");
}

}  // namespace

std::string PolicyText(const core::Policy& policy) {
  std::string text;
  for (const core::TenantRule& rule : policy.tenants) {
    text += TenantText(rule);
  }
  if (!policy.default_tenant.empty()) {
    absl::StrAppend(&text, "default_tenant: ", Quoted(policy.default_tenant), "\n");
  }
  for (const core::RoleRule& rule : policy.roles) {
    text += RoleText(rule);
  }
  return text;
}

}  // namespace rnicd::fuzz
