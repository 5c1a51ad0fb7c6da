#include "client/ctl/commands/grant_options.h"

#include <array>
#include <chrono>
#include <string>
#include <utility>

#include "base/status.h"
#include "client/admin/address_ranges.h"
#include "client/admin/amounts.h"
#include "client/ctl/line/option_values.h"

namespace rnicd::ctl {
namespace {

constexpr std::chrono::milliseconds kLongestLifetime = std::chrono::years(10);

// Options that set one limit each.
constexpr std::array kShortForms = {std::pair{"--pinned", "pinned_bytes"}, std::pair{"--memory", "memory_bytes"},
                                    std::pair{"--regions", "regions"},     std::pair{"--queue-pairs", "queue_pairs"},
                                    std::pair{"--sessions", "sessions"},   std::pair{"--rate", "requests_per_second"}};

absl::Status InOption(std::string_view option, const absl::Status& status) {
  return status.ok() ? status : UsageError("option " + std::string(option) + ": " + std::string(status.message()));
}

absl::Status ReadConnections(const CommandLine& line, v1::CreateGrantRequest& request) {
  for (const std::string_view name : {"listen", "connect", "accept"}) {
    const std::string option = "--" + std::string(name);
    if (const std::optional<std::string> list = line.Value(option); list.has_value()) {
      RNICD_RETURN_IF_ERROR(InOption(option, AddRanges(name, *list, *request.mutable_connections())));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<v1::CreateGrantRequest> GrantRequestFrom(const CommandLine& line) {
  v1::CreateGrantRequest request;
  const std::optional<std::string> name = line.Value("--name");
  if (!name.has_value()) {
    return UsageError("option --name is missing");
  }
  request.set_name(*name);
  request.set_door(line.Has("--door"));
  if (request.door() && line.Has("--secret-only")) {
    return UsageError("options --door and --secret-only exclude each other");
  }
  request.set_pod_uid(line.Value("--pod-uid").value_or(""));
  RNICD_ASSIGN_OR_RETURN(
      const std::chrono::milliseconds lifetime,
      DurationOr(line, "--lifetime", std::chrono::milliseconds(0), std::chrono::milliseconds(1), kLongestLifetime));
  request.set_lifetime_ms(static_cast<uint64_t>(lifetime.count()));
  LimitSetter limits(*request.mutable_limits());
  for (const auto& [option, limit] : kShortForms) {
    if (const std::optional<std::string> value = line.Value(option); value.has_value()) {
      RNICD_RETURN_IF_ERROR(InOption(option, limits.Set(limit, *value)));
    }
  }
  RNICD_RETURN_IF_ERROR(InOption("--limits", limits.SetList(line.Value("--limits").value_or(""))));
  LimitSetter session_limits(*request.mutable_session_limits());
  RNICD_RETURN_IF_ERROR(
      InOption("--session-limits", session_limits.SetList(line.Value("--session-limits").value_or(""))));
  RNICD_RETURN_IF_ERROR(ReadConnections(line, request));
  return request;
}

}  // namespace rnicd::ctl
