#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "provider/verbs/verbs_api.h"

namespace rnicd::provider {

// Which of a port's addresses queue pairs use. A GID is found by what it is, never by its place in the table: an
// address that is deleted and added again may come back elsewhere.
struct GidRule {
  enum class Kind : uint8_t {
    // The best there is: RoCE v2 before v1 and before nothing, IPv4 before global IPv6 before link-local.
    kBest,
    kIpv4,
    kIpv6,
    kLinkLocal,
    // Exactly `address`.
    kAddress,
  };
  Kind kind = Kind::kBest;
  ibv_gid address = {};
};

// "auto", "ipv4", "ipv6", "link-local" or an IPv4 or IPv6 address. Nothing when it is none of these.
std::optional<GidRule> ParseGidRule(std::string_view text);
// Null when no entry satisfies the rule. Of several equally good ones the first in the table.
const GidEntry* ChooseGid(std::span<const GidEntry> table, const GidRule& rule);
// As inet_ntop(3) writes it, for logs.
std::string GidText(const ibv_gid& gid);

}  // namespace rnicd::provider
