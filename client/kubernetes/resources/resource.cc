#include "client/kubernetes/resources/resource.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "base/status.h"
#include "base/units.h"
#include "client/admin/amounts.h"

namespace rnicd::kubernetes {
namespace {

constexpr size_t kMaxLabelCharacters = 63;
// A DNS name has at most 253 characters; Kubernetes prefixes the name with "requests." when it counts quotas.
constexpr size_t kMaxDomainCharacters = 253 - 9;

absl::Status Wrong(std::string_view item, std::string_view why) {
  return absl::InvalidArgumentError("resource '" + std::string(item) + "': " + std::string(why));
}

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) {
      return parts;
    }
    text.remove_prefix(end + 1);
  }
}

bool IsSmallLetterOrDigit(char c) { return absl::ascii_islower(c) || absl::ascii_isdigit(c); }

// Up to 63 characters; the first and the last are letters or digits.
bool IsDnsLabel(std::string_view label) {
  return !label.empty() && label.size() <= kMaxLabelCharacters && IsSmallLetterOrDigit(label.front()) &&
         IsSmallLetterOrDigit(label.back()) &&
         std::all_of(label.begin(), label.end(), [](char c) { return IsSmallLetterOrDigit(c) || c == '-'; });
}

bool IsDomain(std::string_view domain) {
  const std::vector<std::string_view> labels = Split(domain, '.');
  return domain.size() <= kMaxDomainCharacters && std::all_of(labels.begin(), labels.end(), IsDnsLabel);
}

bool IsType(std::string_view type) {
  const auto fits = [](char c) { return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.'; };
  return !type.empty() && type.size() <= kMaxLabelCharacters && absl::ascii_isalnum(type.front()) &&
         absl::ascii_isalnum(type.back()) && std::all_of(type.begin(), type.end(), fits);
}

absl::Status CheckName(std::string_view item, std::string_view name) {
  const size_t slash = name.find('/');
  if (slash == std::string_view::npos || !IsDomain(name.substr(0, slash)) || !IsType(name.substr(slash + 1))) {
    return Wrong(item, "the name is not a DNS name, a slash and a type, such as rnicd.io/memory-64mi");
  }
  // Kubernetes accepts neither as an extended resource.
  if (name.find("kubernetes.io/") != std::string_view::npos || name.starts_with("requests.")) {
    return Wrong(item, "names of kubernetes.io and those that begin with 'requests.' belong to Kubernetes");
  }
  return absl::OkStatus();
}

absl::StatusOr<ResourceSpec> ParseResource(std::string_view item) {
  const size_t equals = item.find('=');
  if (equals == std::string_view::npos) {
    return Wrong(item, "it is not a name and a unit, such as rnicd.io/memory-64mi=64MiB");
  }
  RNICD_RETURN_IF_ERROR(CheckName(item, item.substr(0, equals)));
  ResourceSpec spec{.name = std::string(item.substr(0, equals))};
  const std::string_view amounts = item.substr(equals + 1);
  const size_t colon = amounts.find(':');
  const std::optional<uint64_t> unit = ParseSize(amounts.substr(0, colon));
  if (!unit.has_value() || *unit == 0 || *unit % kNdkPageBytes != 0) {
    return Wrong(item, "the unit is not a size such as 64MiB, and a multiple of 4096 bytes");
  }
  spec.unit_bytes = *unit;
  if (colon != std::string_view::npos) {
    spec.count = ParseNumber(amounts.substr(colon + 1), UINT64_MAX).value_or(0);
    if (spec.count == 0) {
      return Wrong(item, "the count behind the colon is not a number from 1");
    }
  }
  return spec;
}

}  // namespace

absl::StatusOr<std::vector<ResourceSpec>> ParseResources(std::string_view text) {
  std::vector<ResourceSpec> resources;
  for (const std::string_view item : Split(text, ',')) {
    RNICD_ASSIGN_OR_RETURN(ResourceSpec spec, ParseResource(item));
    // The type names the socket, so it must be unique even across domains.
    if (std::any_of(resources.begin(), resources.end(),
                    [&](const ResourceSpec& other) { return TypeOf(other.name) == TypeOf(spec.name); })) {
      return Wrong(item, "another resource has this type");
    }
    resources.push_back(std::move(spec));
  }
  return resources;
}

std::string_view TypeOf(std::string_view resource_name) { return resource_name.substr(resource_name.find('/') + 1); }

}  // namespace rnicd::kubernetes
