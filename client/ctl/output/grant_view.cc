#include <algorithm>
#include <utility>

#include "client/ctl/line/units.h"
#include "client/ctl/output/table.h"
#include "client/ctl/output/views.h"

namespace rnicd::ctl {
namespace {

// Every limit by its name on the wire; 0 means no limit.
Json LimitsJson(const v1::ResourceLimits& limits) {
  Json json = Json::object();
  const google::protobuf::Descriptor& fields = *v1::ResourceLimits::descriptor();
  for (int index = 0; index < fields.field_count(); ++index) {
    const google::protobuf::FieldDescriptor* const field = fields.field(index);
    json[field->name()] = v1::ResourceLimits::GetReflection()->GetUInt64(limits, field);
  }
  return json;
}

Json RangesJson(const google::protobuf::RepeatedPtrField<v1::AddressRange>& ranges) {
  Json list = Json::array();
  for (const v1::AddressRange& range : ranges) {
    Json& json = list.emplace_back(Json{{"prefix", range.prefix()}});
    if (range.first_port() != 0) {
      json.update({{"first_port", range.first_port()}, {"last_port", range.last_port()}});
    }
  }
  return list;
}

Json ConnectionsJson(const v1::ConnectionPolicy& connections) {
  return {{"listen", RangesJson(connections.listen())},
          {"connect", RangesJson(connections.connect())},
          {"accept", RangesJson(connections.accept())}};
}

// Null for a grant without devices.
Json DevicesJson(const v1::GrantInfo& grant) {
  if (!grant.has_devices()) {
    return {};
  }
  Json ids = Json::array();
  for (const std::string& id : grant.devices().device_ids()) {
    ids.push_back(id);
  }
  return {{"resource", grant.devices().resource_name()}, {"ids", ids}};
}

// Null for a grant with a secret.
Json DoorJson(const v1::GrantInfo& grant) {
  if (!grant.has_door()) {
    return {};
  }
  return {{"socket_dir", grant.door().socket_dir()},
          {"connections", grant.door().connections()},
          {"refused", grant.door().refused()},
          {"storms", grant.door().storms()}};
}

std::string PodText(const v1::GrantInfo& grant) { return grant.pod_uid().empty() ? "any" : grant.pod_uid(); }

std::string CountLimit(uint64_t limit) { return limit == 0 ? "no limit" : std::to_string(limit); }

}  // namespace

std::string NewGrantText(const v1::CreateGrantResponse& grant) {
  if (!grant.socket_dir().empty()) {
    return KeyValueLines({{"grant", std::to_string(grant.grant_id())},
                          {"tenant", grant.tenant()},
                          {"directory", grant.socket_dir()}}) +
           "\nWhoever connects there is admitted as the grant. Mount the directory read-only into one container,\n"
           "and set RNICD_SOCKET_DIR there to where it is mounted.\n";
  }
  return KeyValueLines(
             {{"grant", std::to_string(grant.grant_id())}, {"tenant", grant.tenant()}, {"secret", grant.secret()}}) +
         "\nThe secret is shown this once. A workload presents it as RNICD_GRANT.\n";
}

Json NewGrantJson(const v1::CreateGrantResponse& grant) {
  const bool door = !grant.socket_dir().empty();
  return {{"grant_id", std::to_string(grant.grant_id())},
          {"tenant", grant.tenant()},
          door ? Json{"socket_dir", grant.socket_dir()} : Json{"secret", grant.secret()}};
}

std::string GrantsText(const std::vector<v1::GrantInfo>& grants) {
  const bool some_door =
      std::any_of(grants.begin(), grants.end(), [](const v1::GrantInfo& grant) { return grant.has_door(); });
  Table table({{"GRANT", Align::kRight},
               {"TENANT"},
               {"POD"},
               {"AGE", Align::kRight},
               {"ENDS IN", Align::kRight},
               {"SESSIONS", Align::kRight},
               {"MAY PIN", Align::kRight},
               {"MEMORY", Align::kRight},
               {"REGIONS", Align::kRight},
               {"CALLS/S", Align::kRight},
               {some_door ? "DOOR" : ""},
               {WorkloadTitle(grants)}});
  for (const v1::GrantInfo& grant : grants) {
    const v1::ResourceLimits& limits = grant.limits();
    table.AddRow({std::to_string(grant.grant_id()), grant.tenant(), PodText(grant), FormatMilliseconds(grant.age_ms()),
                  grant.has_remaining_ms() ? FormatMilliseconds(grant.remaining_ms()) : "never",
                  std::to_string(grant.sessions()), FormatLimit(limits.pinned_bytes()),
                  FormatLimit(limits.memory_bytes()), CountLimit(limits.regions()),
                  CountLimit(limits.requests_per_second()), grant.has_door() ? "yes" : "",
                  WorkloadText(grant.workload())});
  }
  return table.Text();
}

Json GrantsJson(const std::vector<v1::GrantInfo>& grants) {
  Json list = Json::array();
  for (const v1::GrantInfo& grant : grants) {
    list.push_back({{"grant_id", std::to_string(grant.grant_id())},
                    {"tenant", grant.tenant()},
                    {"pod_uid", grant.pod_uid()},
                    {"age_ms", grant.age_ms()},
                    {"remaining_ms", grant.has_remaining_ms() ? Json(grant.remaining_ms()) : Json()},
                    {"limits", LimitsJson(grant.limits())},
                    {"session_limits", LimitsJson(grant.session_limits())},
                    {"connections", ConnectionsJson(grant.connections())},
                    {"sessions", grant.sessions()},
                    {"devices", DevicesJson(grant)},
                    {"door", DoorJson(grant)},
                    {"workload", WorkloadJson(grant.workload())}});
  }
  return {{"grants", list}};
}

std::string DoorsText(const std::vector<v1::GrantInfo>& grants) {
  Table table({{"GRANT", Align::kRight},
               {"TENANT"},
               {"POD"},
               {"CONNECTIONS", Align::kRight},
               {"REFUSED", Align::kRight},
               {"STORMS", Align::kRight},
               {"DIRECTORY"},
               {WorkloadTitle(grants)}});
  for (const v1::GrantInfo& grant : grants) {
    const v1::DoorInfo& door = grant.door();
    table.AddRow({std::to_string(grant.grant_id()), grant.tenant(), PodText(grant), std::to_string(door.connections()),
                  std::to_string(door.refused()), std::to_string(door.storms()), door.socket_dir(),
                  WorkloadText(grant.workload())});
  }
  return table.Text();
}

Json DoorsJson(const std::vector<v1::GrantInfo>& grants) {
  Json list = Json::array();
  for (const v1::GrantInfo& grant : grants) {
    Json door = {{"grant_id", std::to_string(grant.grant_id())},
                 {"tenant", grant.tenant()},
                 {"pod_uid", grant.pod_uid()},
                 {"workload", WorkloadJson(grant.workload())}};
    door.update(DoorJson(grant));
    list.push_back(std::move(door));
  }
  return {{"doors", list}};
}

}  // namespace rnicd::ctl
