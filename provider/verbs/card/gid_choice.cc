#include "provider/verbs/card/gid_choice.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <tuple>
#include <utility>

namespace rnicd::provider {
namespace {

// ::ffff:a.b.c.d, as RoCE writes an IPv4 address.
constexpr std::array<uint8_t, 12> kIpv4Prefix = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

bool IsIpv4(const ibv_gid& gid) { return std::equal(kIpv4Prefix.begin(), kIpv4Prefix.end(), gid.raw); }
bool IsSame(const ibv_gid& one, const ibv_gid& other) { return std::memcmp(one.raw, other.raw, sizeof(one.raw)) == 0; }

bool Satisfies(const ibv_gid& gid, const GidRule& rule) {
  if (IsSame(gid, ibv_gid{})) {
    return false;
  }
  switch (rule.kind) {
    case GidRule::Kind::kBest:
      return true;
    case GidRule::Kind::kIpv4:
      return IsIpv4(gid);
    case GidRule::Kind::kIpv6:
      return !IsIpv4(gid) && !IsLinkLocal(gid);
    case GidRule::Kind::kLinkLocal:
      return IsLinkLocal(gid);
    case GidRule::Kind::kAddress:
      return IsSame(gid, rule.address);
  }
  return false;
}

int TypeRank(uint32_t type) {
  switch (type) {
    case IBV_GID_TYPE_ROCE_V2:
      return 0;
    case IBV_GID_TYPE_ROCE_V1:
      return 1;
    default:
      return 2;
  }
}

int AddressRank(const ibv_gid& gid) {
  if (IsIpv4(gid)) {
    return 0;
  }
  return IsLinkLocal(gid) ? 2 : 1;
}

// Smaller is better.
std::tuple<int, int> RankOf(const GidEntry& entry) { return {TypeRank(entry.type), AddressRank(entry.gid)}; }

}  // namespace

std::optional<GidRule> ParseGidRule(std::string_view text) {
  constexpr std::pair<std::string_view, GidRule::Kind> kWords[] = {{"auto", GidRule::Kind::kBest},
                                                                   {"ipv4", GidRule::Kind::kIpv4},
                                                                   {"ipv6", GidRule::Kind::kIpv6},
                                                                   {"link-local", GidRule::Kind::kLinkLocal}};
  for (const auto& [word, kind] : kWords) {
    if (text == word) {
      return GidRule{.kind = kind};
    }
  }
  // inet_pton(3) would stop at the NUL byte.
  if (text.find('\0') != std::string_view::npos) {
    return std::nullopt;
  }
  const std::string address(text);
  GidRule rule{.kind = GidRule::Kind::kAddress};
  if (inet_pton(AF_INET6, address.c_str(), rule.address.raw) == 1) {
    return rule;
  }
  if (inet_pton(AF_INET, address.c_str(), rule.address.raw + kIpv4Prefix.size()) == 1) {
    std::ranges::copy(kIpv4Prefix, rule.address.raw);
    return rule;
  }
  return std::nullopt;
}

const GidEntry* ChooseGid(std::span<const GidEntry> table, const GidRule& rule) {
  const GidEntry* best = nullptr;
  for (const GidEntry& entry : table) {
    if (Satisfies(entry.gid, rule) && (best == nullptr || RankOf(entry) < RankOf(*best))) {
      best = &entry;
    }
  }
  return best;
}

bool IsLinkLocal(const ibv_gid& gid) { return gid.raw[0] == 0xfe && (gid.raw[1] & 0xc0) == 0x80; }

std::string GidText(const ibv_gid& gid) {
  char text[INET6_ADDRSTRLEN] = {};
  return inet_ntop(AF_INET6, gid.raw, text, sizeof(text)) != nullptr ? text : "";
}

}  // namespace rnicd::provider
