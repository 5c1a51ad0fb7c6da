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

std::string CountLimit(uint64_t limit) { return limit == 0 ? "no limit" : std::to_string(limit); }

}  // namespace

std::string NewGrantText(const v1::CreateGrantResponse& grant) {
  return KeyValueLines(
             {{"grant", std::to_string(grant.grant_id())}, {"tenant", grant.tenant()}, {"secret", grant.secret()}}) +
         "\nThe secret is shown this once. A workload presents it as RNICD_GRANT.\n";
}

Json NewGrantJson(const v1::CreateGrantResponse& grant) {
  return {{"grant_id", std::to_string(grant.grant_id())}, {"tenant", grant.tenant()}, {"secret", grant.secret()}};
}

std::string GrantsText(const std::vector<v1::GrantInfo>& grants) {
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
               {WorkloadTitle(grants)}});
  for (const v1::GrantInfo& grant : grants) {
    const v1::ResourceLimits& limits = grant.limits();
    table.AddRow({std::to_string(grant.grant_id()), grant.tenant(), grant.pod_uid().empty() ? "any" : grant.pod_uid(),
                  FormatMilliseconds(grant.age_ms()),
                  grant.has_remaining_ms() ? FormatMilliseconds(grant.remaining_ms()) : "never",
                  std::to_string(grant.sessions()), FormatLimit(limits.pinned_bytes()),
                  FormatLimit(limits.memory_bytes()), CountLimit(limits.regions()),
                  CountLimit(limits.requests_per_second()), WorkloadText(grant.workload())});
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
                    {"sessions", grant.sessions()},
                    {"devices", DevicesJson(grant)},
                    {"workload", WorkloadJson(grant.workload())}});
  }
  return {{"grants", list}};
}

}  // namespace rnicd::ctl
