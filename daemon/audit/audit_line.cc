#include "daemon/audit/audit_line.h"

#include <nlohmann/json.hpp>
#include <numeric>
#include <string_view>

#include "base/error_reason.h"

namespace rnicd::audit {
namespace {

using Json = nlohmann::ordered_json;

// Bounds the queue in bytes as well.
constexpr size_t kTextBytesMax = 1024;

std::string Cut(std::string_view text) { return std::string(text.substr(0, kTextBytesMax)); }

// The devices as text, truncated to the length that is kept.
std::string DevicesText(const core::DeviceSet& devices) {
  std::string text = devices.resource;
  for (const std::string& id : devices.ids) {
    if (text.size() >= kTextBytesMax) {
      break;
    }
    text += (&id == devices.ids.data() ? '=' : ',') + id;
  }
  return Cut(text);
}

void TakeWorkload(const core::Workload& workload, AuditLine& line) {
  line.workload = {.namespace_name = Cut(workload.name.namespace_name),
                   .pod = Cut(workload.name.pod),
                   .container = Cut(workload.name.container)};
  if (workload.devices != nullptr) {
    line.devices = DevicesText(*workload.devices);
  }
}

std::string_view RoleName(core::Role role) {
  switch (role) {
    case core::Role::kWorkload:
      return "workload";
    case core::Role::kOperator:
      return "operator";
    case core::Role::kDevicePlugin:
      return "device_plugin";
  }
  return "unknown";
}

std::string_view ResultOf(const AuditLine& line) {
  if (line.code == absl::StatusCode::kOk) {
    return "allowed";
  }
  return line.code == absl::StatusCode::kInternal ? "failed" : "refused";
}

// A failure that was not made by MakeError, such as a refused connection, has only its code.
std::string ReasonOf(const AuditLine& line) {
  if (line.code == absl::StatusCode::kOk) {
    return "";
  }
  const ErrorReasonRow& row = RowOf(line.error.reason);
  return row.code == line.code ? std::string(row.name) : absl::StatusCodeToString(line.code);
}

void AddCaller(Json& json, const std::optional<core::Caller>& caller) {
  if (caller.has_value()) {
    json["pid"] = caller->pid;
    json["uid"] = caller->uid;
    json["gid"] = caller->gid;
    json["sid"] = caller->sid;
    json["pod_uid"] = caller->container.pod_uid;
    json["container_id"] = caller->container.id;
    json["role"] = RoleName(caller->role);
  } else {
    json["pid"] = nullptr;
    json["uid"] = nullptr;
    json["gid"] = nullptr;
    json["sid"] = "";
    json["pod_uid"] = "";
    json["container_id"] = "";
    json["role"] = "daemon";
  }
}

// The decisions that the line stands for.
void AddTimes(Json& json, const char* key, const AuditLine& line) {
  json[key] = line.times;
  json["first"] = Rfc3339(line.first);
  json["last"] = Rfc3339(line.last);
}

// Bytes that a byte of a text becomes in JSON, at most.
constexpr size_t EscapedBytesMax(char character) {
  if (character == '"' || character == '\\') {
    return 2;
  }
  // Control characters and everything that is not ASCII become \uXXXX.
  return character >= 0x20 && character < 0x7f ? 1 : 6;
}

size_t EscapedBytesMax(std::string_view text) {
  return std::accumulate(text.begin(), text.end(), size_t{0},
                         [](size_t sum, char character) { return sum + EscapedBytesMax(character); });
}

std::string Ended(const Json& json) {
  return json.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace) + "\n";
}

}  // namespace

AuditLine LineOf(const core::Decision& decision, WallTime time) {
  AuditLine line{.time = time,
                 .what = Cut(decision.what),
                 .code = decision.status.code(),
                 .error = ErrorInfoOf(decision.status),
                 .tenant = Cut(decision.tenant),
                 .session_id = decision.session.value,
                 .object = Cut(decision.object),
                 .note = Cut(decision.note)};
  line.error.field = Cut(line.error.field);
  if (decision.workload != nullptr) {
    TakeWorkload(*decision.workload, line);
  }
  if (decision.caller != nullptr) {
    line.caller = *decision.caller;
    line.caller->handle = nullptr;
  }
  return line;
}

AuditLine LeftOutLine(const std::string& owner, uint64_t times, WallTime first, WallTime last) {
  return {.time = last, .what = "audit.left_out", .times = times, .first = first, .last = last, .left_out_of = owner};
}

size_t BytesMax(const AuditLine& line) {
  // Keys, numbers and times, which are the same for all lines but for those of few.
  constexpr size_t kFrame = 352;
  constexpr size_t kFigures = 96;
  constexpr size_t kTimes = 96;
  size_t bytes = kFrame + (line.error.limit == 0 ? 0 : kFigures) + (line.times == 0 ? 0 : kTimes);
  for (const std::string_view text :
       {std::string_view(line.what), std::string_view(line.error.field), std::string_view(line.tenant),
        std::string_view(line.workload.namespace_name), std::string_view(line.workload.pod),
        std::string_view(line.workload.container), std::string_view(line.devices), std::string_view(line.object),
        std::string_view(line.note), std::string_view(line.left_out_of)}) {
    bytes += EscapedBytesMax(text);
  }
  if (line.caller.has_value()) {
    bytes += EscapedBytesMax(line.caller->sid) + EscapedBytesMax(line.caller->container.pod_uid) +
             EscapedBytesMax(line.caller->container.id);
  }
  return bytes;
}

std::string Format(const AuditLine& line) {
  Json json;
  json["time"] = Rfc3339(line.time);
  json["what"] = line.what;
  if (!line.left_out_of.empty()) {
    json["owner"] = line.left_out_of;
    AddTimes(json, "count", line);
    return Ended(json);
  }
  json["result"] = ResultOf(line);
  json["reason"] = ReasonOf(line);
  json["field"] = line.error.field;
  if (line.error.limit != 0) {
    json["limit"] = line.error.limit;
    json["used"] = line.error.used;
    json["requested"] = line.error.requested;
  }
  AddCaller(json, line.caller);
  json["tenant"] = line.tenant;
  json["namespace"] = line.workload.namespace_name;
  json["pod"] = line.workload.pod;
  json["container"] = line.workload.container;
  if (!line.devices.empty()) {
    json["devices"] = line.devices;
  }
  json["session_id"] = line.session_id == 0 ? "" : std::to_string(line.session_id);
  json["object"] = line.object;
  json["note"] = line.note;
  if (line.times != 0) {
    AddTimes(json, "times", line);
  }
  return Ended(json);
}

std::string FormatLost(WallTime time, uint64_t count) {
  Json json;
  json["time"] = Rfc3339(time);
  json["what"] = "audit.lost";
  json["count"] = count;
  return Ended(json);
}

}  // namespace rnicd::audit
