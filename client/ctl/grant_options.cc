#include "client/ctl/grant_options.h"

#include <array>
#include <chrono>
#include <limits>
#include <set>
#include <string>
#include <utility>

#include "base/status.h"
#include "client/ctl/option_values.h"
#include "client/ctl/units.h"

namespace rnicd::ctl {
namespace {

constexpr std::chrono::milliseconds kLongestLifetime = std::chrono::years(10);

// The options that stand for one limit.
constexpr std::array kShortForms = {std::pair{"--pinned", "pinned_bytes"}, std::pair{"--memory", "memory_bytes"},
                                    std::pair{"--regions", "regions"},     std::pair{"--queue-pairs", "queue_pairs"},
                                    std::pair{"--sessions", "sessions"},   std::pair{"--rate", "requests_per_second"}};

// Sets limits by name, each once.
class LimitSetter {
 public:
  explicit LimitSetter(v1::ResourceLimits& limits) : limits_(limits) {}

  absl::Status Set(std::string_view option, const std::string& name, const std::string& value) {
    const google::protobuf::FieldDescriptor* const field = v1::ResourceLimits::descriptor()->FindFieldByName(name);
    if (field == nullptr) {
      return BadValue(option, name, "a limit of policy.proto");
    }
    if (!names_.insert(name).second) {
      return UsageError("option " + std::string(option) + ": " + name + " is given twice");
    }
    const bool in_bytes = name.ends_with("_bytes");
    const std::optional<uint64_t> amount =
        in_bytes ? ParseSize(value) : ParseNumber(value, std::numeric_limits<uint64_t>::max());
    if (!amount.has_value()) {
      return BadValue(option, value, in_bytes ? "a size such as 64KiB, 64MiB or 1GiB" : "a number");
    }
    limits_.GetReflection()->SetUInt64(&limits_, field, *amount);
    return absl::OkStatus();
  }

  // "name=value,name=value".
  absl::Status SetList(std::string_view option, std::string_view list) {
    while (!list.empty()) {
      const std::string_view item = list.substr(0, list.find(','));
      list.remove_prefix(std::min(list.size(), item.size() + 1));
      const size_t equals = item.find('=');
      if (equals == std::string_view::npos) {
        return BadValue(option, item, "a limit and its value, such as regions=100");
      }
      RNICD_RETURN_IF_ERROR(Set(option, std::string(item.substr(0, equals)), std::string(item.substr(equals + 1))));
    }
    return absl::OkStatus();
  }

 private:
  v1::ResourceLimits& limits_;
  std::set<std::string> names_;
};

}  // namespace

absl::StatusOr<v1::CreateGrantRequest> GrantRequestFrom(const CommandLine& line) {
  v1::CreateGrantRequest request;
  const std::optional<std::string> name = line.Value("--name");
  if (!name.has_value()) {
    return UsageError("option --name is missing");
  }
  request.set_name(*name);
  request.set_pod_uid(line.Value("--pod-uid").value_or(""));
  RNICD_ASSIGN_OR_RETURN(
      const std::chrono::milliseconds lifetime,
      DurationOr(line, "--lifetime", std::chrono::milliseconds(0), std::chrono::milliseconds(1), kLongestLifetime));
  request.set_lifetime_ms(static_cast<uint64_t>(lifetime.count()));
  LimitSetter limits(*request.mutable_limits());
  for (const auto& [option, limit] : kShortForms) {
    if (const std::optional<std::string> value = line.Value(option); value.has_value()) {
      RNICD_RETURN_IF_ERROR(limits.Set(option, limit, *value));
    }
  }
  RNICD_RETURN_IF_ERROR(limits.SetList("--limits", line.Value("--limits").value_or("")));
  RNICD_RETURN_IF_ERROR(LimitSetter(*request.mutable_session_limits())
                            .SetList("--session-limits", line.Value("--session-limits").value_or("")));
  return request;
}

}  // namespace rnicd::ctl
