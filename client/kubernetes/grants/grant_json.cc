#include "client/kubernetes/grants/grant_file.h"

#include <algorithm>
#include <optional>
#include <set>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/hex.h"
#include "base/status.h"
#include "client/admin/amounts.h"
#include "nlohmann/json.hpp"

namespace rnicd::kubernetes {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr uint64_t kFormat = 1;
constexpr size_t kDigestBytes = 32;

OrderedJson LimitsToJson(const v1::ResourceLimits& limits) {
  OrderedJson object = OrderedJson::object();
  const google::protobuf::Descriptor* const descriptor = v1::ResourceLimits::descriptor();
  for (int index = 0; index < descriptor->field_count(); ++index) {
    const google::protobuf::FieldDescriptor* const field = descriptor->field(index);
    if (const uint64_t amount = v1::ResourceLimits::GetReflection()->GetUInt64(limits, field); amount > 0) {
      object[std::string(field->name())] = amount;
    }
  }
  return object;
}

OrderedJson ToJson(const GrantRecord& grant) {
  return OrderedJson{{"grant_id", std::to_string(grant.grant_id)},
                     {"door", grant.has_door},
                     {"secret_sha256", absl::BytesToHexString(grant.secret_sha256)},
                     {"name", grant.name},
                     {"resource", grant.resource},
                     {"device_ids", grant.device_ids},
                     {"limits", LimitsToJson(grant.limits)},
                     {"made_ms", grant.made_ms},
                     {"pod", grant.pod},
                     {"pod_uid", grant.pod_uid},
                     {"container", grant.container},
                     {"suspended", grant.suspended}};
}

absl::Status Wrong(const std::string& why) { return absl::InvalidArgumentError(why); }

// The member, or null.
const OrderedJson& MemberOrNull(const OrderedJson& object, const char* name) {
  static const OrderedJson kNull;
  const auto found = object.find(name);
  return found == object.end() ? kNull : *found;
}

absl::StatusOr<std::string> RequiredText(const OrderedJson& grant, const char* name) {
  const OrderedJson& member = MemberOrNull(grant, name);
  return member.is_string() ? absl::StatusOr<std::string>(member.get<std::string>())
                            : Wrong(absl::StrCat(name, " is not text"));
}

// False when the member is absent.
absl::StatusOr<bool> OptionalFlag(const OrderedJson& grant, const char* name) {
  const OrderedJson& member = MemberOrNull(grant, name);
  if (!member.is_boolean() && !member.is_null()) {
    return Wrong(absl::StrCat(name, " is not true or false"));
  }
  return member.is_boolean() && member.get<bool>();
}

absl::StatusOr<std::string> DigestFrom(const OrderedJson& grant) {
  RNICD_ASSIGN_OR_RETURN(const std::string hex, RequiredText(grant, "secret_sha256"));
  const std::optional<std::string> digest = BytesFromHex(hex);
  if (!digest.has_value() || (!digest->empty() && digest->size() != kDigestBytes)) {
    return Wrong("secret_sha256 is not 64 hexadecimal digits");
  }
  return *digest;
}

absl::StatusOr<std::vector<std::string>> DevicesFrom(const OrderedJson& grant) {
  const OrderedJson& ids = MemberOrNull(grant, "device_ids");
  const auto is_id = [](const OrderedJson& id) { return id.is_string() && !id.get_ref<const std::string&>().empty(); };
  if (!ids.is_array() || ids.empty() || !std::all_of(ids.begin(), ids.end(), is_id)) {
    return Wrong("device_ids is not a list of names");
  }
  return ids.get<std::vector<std::string>>();
}

// An unknown limit would be lost with the next change of the file, so it is an error.
absl::StatusOr<v1::ResourceLimits> LimitsFrom(const OrderedJson& grant) {
  const OrderedJson& object = MemberOrNull(grant, "limits");
  v1::ResourceLimits limits;
  if (!object.is_object()) {
    return Wrong("limits is not an object");
  }
  for (const auto& [name, amount] : object.items()) {
    const google::protobuf::FieldDescriptor* const field = v1::ResourceLimits::descriptor()->FindFieldByName(name);
    if (field == nullptr || !amount.is_number_unsigned()) {
      return Wrong(absl::StrCat("'", name, "' is not a limit, or not a number"));
    }
    v1::ResourceLimits::GetReflection()->SetUInt64(&limits, field, amount.get<uint64_t>());
  }
  return limits;
}

// Members that the first files did not have.
absl::Status ReadNewerMembers(const OrderedJson& grant, GrantRecord& record) {
  if (grant.contains("pod_uid")) {
    RNICD_ASSIGN_OR_RETURN(record.pod_uid, RequiredText(grant, "pod_uid"));
  }
  if (grant.contains("container")) {
    RNICD_ASSIGN_OR_RETURN(record.container, RequiredText(grant, "container"));
  }
  RNICD_ASSIGN_OR_RETURN(record.has_door, OptionalFlag(grant, "door"));
  RNICD_ASSIGN_OR_RETURN(record.suspended, OptionalFlag(grant, "suspended"));
  return absl::OkStatus();
}

absl::StatusOr<GrantRecord> FromJson(const OrderedJson& grant) {
  if (!grant.is_object()) {
    return Wrong("it is not an object");
  }
  GrantRecord record;
  RNICD_ASSIGN_OR_RETURN(const std::string id, RequiredText(grant, "grant_id"));
  record.grant_id = ParseNumber(id, UINT64_MAX).value_or(0);
  if (record.grant_id == 0) {
    return Wrong("grant_id is not a number from 1");
  }
  RNICD_ASSIGN_OR_RETURN(record.secret_sha256, DigestFrom(grant));
  RNICD_ASSIGN_OR_RETURN(record.name, RequiredText(grant, "name"));
  RNICD_ASSIGN_OR_RETURN(record.resource, RequiredText(grant, "resource"));
  RNICD_ASSIGN_OR_RETURN(record.device_ids, DevicesFrom(grant));
  RNICD_ASSIGN_OR_RETURN(record.limits, LimitsFrom(grant));
  RNICD_ASSIGN_OR_RETURN(record.pod, RequiredText(grant, "pod"));
  RNICD_RETURN_IF_ERROR(ReadNewerMembers(grant, record));
  const OrderedJson& made = MemberOrNull(grant, "made_ms");
  if (!made.is_number_unsigned() || made.get<uint64_t>() > INT64_MAX) {
    return Wrong("made_ms is not a time");
  }
  record.made_ms = made.get<int64_t>();
  return record;
}

absl::Status CheckVersion(const OrderedJson& document) {
  const OrderedJson& version = MemberOrNull(document, "version");
  if (!version.is_number_unsigned()) {
    return Wrong("it has no version");
  }
  if (version.get<uint64_t>() != kFormat) {
    return absl::UnimplementedError(
        absl::StrCat("is of version ", version.get<uint64_t>(), ", and this release reads ", kFormat, " only"));
  }
  return absl::OkStatus();
}

}  // namespace

std::string GrantsToJson(const std::vector<GrantRecord>& grants) {
  OrderedJson list = OrderedJson::array();
  for (const GrantRecord& grant : grants) {
    list.push_back(ToJson(grant));
  }
  const OrderedJson document = {{"version", kFormat}, {"grants", std::move(list)}};
  return document.dump(1, ' ', true, OrderedJson::error_handler_t::replace) + "\n";
}

absl::StatusOr<std::vector<GrantRecord>> GrantsFromJson(std::string_view text) {
  const OrderedJson document = OrderedJson::parse(text, nullptr, false);
  if (!document.is_object()) {
    return Wrong("it is not a JSON object");
  }
  RNICD_RETURN_IF_ERROR(CheckVersion(document));
  const OrderedJson& list = MemberOrNull(document, "grants");
  if (!list.is_array()) {
    return Wrong("grants is not a list");
  }
  std::vector<GrantRecord> grants;
  std::set<uint64_t> ids;
  for (const OrderedJson& item : list) {
    absl::StatusOr<GrantRecord> grant = FromJson(item);
    if (!grant.ok()) {
      return Wrong(absl::StrCat("grants[", grants.size(), "]: ", grant.status().message()));
    }
    if (!ids.insert(grant->grant_id).second) {
      return Wrong(absl::StrCat("grants[", grants.size(), "]: its grant_id is there twice"));
    }
    grants.push_back(*std::move(grant));
  }
  return grants;
}

}  // namespace rnicd::kubernetes
