#include "client/admin/address_ranges.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/ndk/network_address.h"
#include "base/status.h"
#include "client/admin/amounts.h"

namespace rnicd::inline client {
namespace {

using Ranges = google::protobuf::RepeatedPtrField<v1::AddressRange>;

// A list, and the lowest port that its ranges may have; 0 for a list without ports.
struct RangeList {
  Ranges& ranges;
  uint64_t lowest_port;
};

RangeList ListOf(std::string_view name, v1::ConnectionPolicy& connections) {
  if (name == "listen") {
    return {*connections.mutable_listen(), 1024};
  }
  return name == "connect" ? RangeList{*connections.mutable_connect(), 1} : RangeList{*connections.mutable_accept(), 0};
}

// "7000" or "7000-7010"; empty for any other text, and for a list without ports.
std::optional<std::pair<uint32_t, uint32_t>> ParsePorts(std::string_view text, uint64_t lowest) {
  const size_t dash = text.find('-');
  const std::optional<uint64_t> first = ParseNumber(text.substr(0, dash), UINT16_MAX);
  const std::optional<uint64_t> last =
      dash == std::string_view::npos ? first : ParseNumber(text.substr(dash + 1), UINT16_MAX);
  if (lowest == 0 || !first.has_value() || !last.has_value() || *first < lowest || *first > *last) {
    return std::nullopt;
  }
  return std::pair(static_cast<uint32_t>(*first), static_cast<uint32_t>(*last));
}

std::string ExpectedPorts(uint64_t lowest) {
  return lowest == 0 ? "a prefix alone: the peers' ports do not count"
                     : "a prefix with ports such as @7000-7010, from " + std::to_string(lowest) + " to " +
                           std::to_string(UINT16_MAX);
}

absl::Status IsNoRange(std::string_view item, const std::string& expected) {
  return absl::InvalidArgumentError("'" + std::string(item) + "' is not " + expected);
}

absl::Status AddRange(std::string_view item, const RangeList& list) {
  const size_t at = item.find('@');
  const std::string prefix(item.substr(0, at));
  if (!IpPrefix::FromText(prefix).has_value()) {
    return IsNoRange(item, "an address, or a prefix such as 10.98.0.0/16");
  }
  v1::AddressRange range;
  range.set_prefix(prefix);
  if (at != std::string_view::npos) {
    const auto ports = ParsePorts(item.substr(at + 1), list.lowest_port);
    if (!ports.has_value()) {
      return IsNoRange(item, ExpectedPorts(list.lowest_port));
    }
    range.set_first_port(ports->first);
    range.set_last_port(ports->second);
  }
  *list.ranges.Add() = std::move(range);
  return absl::OkStatus();
}

}  // namespace

absl::Status AddRanges(std::string_view name, std::string_view list, v1::ConnectionPolicy& connections) {
  const RangeList ranges = ListOf(name, connections);
  while (!list.empty()) {
    const std::string_view item = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), item.size() + 1));
    RNICD_RETURN_IF_ERROR(AddRange(item, ranges));
  }
  return absl::OkStatus();
}

}  // namespace rnicd::inline client
