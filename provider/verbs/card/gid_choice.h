#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "provider/verbs/card/verbs_api.h"

namespace rnicd::provider {

// Rule that selects the GID of a port for queue pairs. A GID is matched by value, never by its index in the table: an
// address that is deleted and added again may get another index.
struct GidRule {
  enum class Kind : uint8_t {
    // The best GID of the port: RoCE v2 before RoCE v1 before others, then IPv4 before global IPv6 before link-local.
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

// Accepts "auto", "ipv4", "ipv6", "link-local" or an IPv4 or IPv6 address; nullopt for other text.
std::optional<GidRule> ParseGidRule(std::string_view text);
// Null when no entry satisfies the rule. Among equally good entries, the first in the table.
const GidEntry* ChooseGid(std::span<const GidEntry> table, const GidRule& rule);
// fe80::/10. The default GID of an InfiniBand port is link-local too.
bool IsLinkLocal(const ibv_gid& gid);
// As inet_ntop(3) writes it, for logs.
std::string GidText(const ibv_gid& gid);

}  // namespace rnicd::provider
