#include "daemon/policy/policy_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/unique_fd.h"
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
                 .session_rate = RateFromWire(wire.session_limits())};
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

absl::Status Refused(const std::string& path, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", why));
}

// Checks the open file and not its name, which may refer to another file a moment later.
absl::Status CheckFile(int fd, const std::string& path) {
  struct stat facts = {};
  if (fstat(fd, &facts) != 0) {
    return absl::ErrnoToStatus(errno, path);
  }
  if (S_ISDIR(facts.st_mode)) {
    return Refused(path, "is a directory");
  }
  if (!S_ISREG(facts.st_mode)) {
    return Refused(path, "is not a regular file");
  }
  if ((facts.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return Refused(path, "must not be writable by group or others");
  }
  return absl::OkStatus();
}

// Reads at most one byte more than a policy may have, so that the parser sees that the file is too long.
absl::StatusOr<std::string> ReadFile(int fd, const std::string& path) {
  std::string text(kPolicyBytesMax + 1, '\0');
  size_t length = 0;
  while (length < text.size()) {
    const ssize_t count = read(fd, text.data() + length, text.size() - length);
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count < 0) {
      return absl::ErrnoToStatus(errno, path);
    }
    if (count == 0) {
      break;
    }
    length += static_cast<size_t>(count);
  }
  text.resize(length);
  return text;
}

}  // namespace

absl::StatusOr<core::Policy> ParsePolicy(std::string_view text, std::string_view file_name) {
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
  // Without O_NONBLOCK a pipe in place of the file would block the daemon for ever.
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file.valid()) {
    return absl::ErrnoToStatus(errno, path);
  }
  RNICD_RETURN_IF_ERROR(CheckFile(file.get(), path));
  RNICD_ASSIGN_OR_RETURN(const std::string text, ReadFile(file.get(), path));
  return ParsePolicy(text, path);
}

}  // namespace rnicd::policy
