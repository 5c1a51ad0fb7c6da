#include "daemon/policy/connections_wire.h"

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace rnicd::policy {
namespace {

using v1::ConnectionPolicy;
using Ranges = google::protobuf::RepeatedPtrField<v1::AddressRange>;

// Ports below are those of services that only root may offer.
constexpr uint16_t kFirstListenPort = 1024;
constexpr uint32_t kLastPort = UINT16_MAX;

struct List {
  int number;
  const char* name;
  const Ranges& (ConnectionPolicy::*ranges)() const;
  // The lowest port that a range may have; 0 for a list without ports.
  uint16_t first_port;
};

constexpr List kLists[] = {
    {ConnectionPolicy::kListenFieldNumber, "listen", &ConnectionPolicy::listen, kFirstListenPort},
    {ConnectionPolicy::kConnectFieldNumber, "connect", &ConnectionPolicy::connect, 1},
    {ConnectionPolicy::kAcceptFieldNumber, "accept", &ConnectionPolicy::accept, 0},
};

struct RangeProblem {
  const char* field;
  std::string what;
};

std::optional<RangeProblem> PortsProblemOf(const v1::AddressRange& range, const List& list) {
  const uint32_t first = range.first_port();
  const uint32_t last = range.last_port();
  if (first == 0 && last == 0) {
    return std::nullopt;
  }
  if (list.first_port == 0) {
    return RangeProblem{first != 0 ? "first_port" : "last_port", "must be absent: the peers' ports do not count"};
  }
  if (first == 0 || last == 0) {
    return RangeProblem{first == 0 ? "first_port" : "last_port", "is missing: give both ports, or none for all"};
  }
  if (first < list.first_port) {
    return RangeProblem{"first_port", absl::StrCat("must be at least ", list.first_port, ", is ", first)};
  }
  if (last > kLastPort) {
    return RangeProblem{"last_port", absl::StrCat("must be at most ", kLastPort, ", is ", last)};
  }
  if (first > last) {
    return RangeProblem{"first_port", absl::StrCat("must not be above last_port ", last, ", is ", first)};
  }
  return std::nullopt;
}

std::optional<RangeProblem> ProblemOf(const v1::AddressRange& range, const List& list) {
  if (!IpPrefix::FromText(range.prefix()).has_value()) {
    return RangeProblem{"prefix", absl::StrCat("must be an address, or a prefix such as 10.98.0.0/16 without bits "
                                               "behind its length, is \"",
                                               absl::CHexEscape(range.prefix()), "\"")};
  }
  return PortsProblemOf(range, list);
}

std::vector<core::AddressRange> RangesFromWire(const Ranges& ranges, uint16_t first_port) {
  std::vector<core::AddressRange> result;
  for (const v1::AddressRange& range : ranges) {
    const bool all = range.first_port() == 0;
    result.push_back({.prefix = *IpPrefix::FromText(range.prefix()),
                      .first_port = all ? first_port : static_cast<uint16_t>(range.first_port()),
                      .last_port = static_cast<uint16_t>(all ? kLastPort : range.last_port())});
  }
  return result;
}

void ToWire(const std::vector<core::AddressRange>& ranges, Ranges* wire) {
  for (const core::AddressRange& range : ranges) {
    v1::AddressRange& added = *wire->Add();
    added.set_prefix(range.prefix.ToText());
    added.set_first_port(range.first_port);
    added.set_last_port(range.last_port);
  }
}

}  // namespace

std::string ConnectionsProblem::Path() const {
  return field.empty() ? list_name : absl::StrCat(list_name, "[", index, "].", field);
}

std::vector<ConnectionsProblem> ProblemsOf(const ConnectionPolicy& connections) {
  std::vector<ConnectionsProblem> problems;
  for (const List& list : kLists) {
    const Ranges& ranges = (connections.*list.ranges)();
    if (ranges.size() > kRangesMax) {
      problems.push_back({.list = list.number,
                          .list_name = list.name,
                          .index = kRangesMax,
                          .what = absl::StrCat("must have at most ", kRangesMax, " ranges, has ", ranges.size())});
      continue;
    }
    for (int index = 0; index < ranges.size(); ++index) {
      if (std::optional<RangeProblem> problem = ProblemOf(ranges[index], list); problem.has_value()) {
        problems.push_back({.list = list.number,
                            .list_name = list.name,
                            .index = index,
                            .field = problem->field,
                            .what = std::move(problem->what)});
      }
    }
  }
  return problems;
}

absl::Status CheckConnections(const ConnectionPolicy& connections, std::string_view field) {
  const std::vector<ConnectionsProblem> problems = ProblemsOf(connections);
  if (problems.empty()) {
    return absl::OkStatus();
  }
  return MakeError(ErrorReason::FIELD_OUT_OF_RANGE, std::string(field) + "." + problems.front().Path());
}

core::ConnectionRules FromWire(const ConnectionPolicy& connections) {
  core::ConnectionRules rules{.listen = RangesFromWire(connections.listen(), kFirstListenPort),
                              .connect = RangesFromWire(connections.connect(), 1)};
  for (const v1::AddressRange& range : connections.accept()) {
    rules.accept.push_back(*IpPrefix::FromText(range.prefix()));
  }
  return rules;
}

ConnectionPolicy ToWire(const core::ConnectionRules& rules) {
  ConnectionPolicy wire;
  ToWire(rules.listen, wire.mutable_listen());
  ToWire(rules.connect, wire.mutable_connect());
  for (const IpPrefix& prefix : rules.accept) {
    wire.add_accept()->set_prefix(prefix.ToText());
  }
  return wire;
}

}  // namespace rnicd::policy
