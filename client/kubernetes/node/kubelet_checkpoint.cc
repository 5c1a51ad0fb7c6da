#include "client/kubernetes/node/kubelet_checkpoint.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/pod_uid.h"
#include "base/status.h"
#include "client/kubernetes/node/whole_file.h"
#include "nlohmann/json.hpp"

namespace rnicd::kubernetes {
namespace {

using Json = nlohmann::json;

constexpr char kCheckpointName[] = "/kubelet_internal_checkpoint";
// Enough for some ten thousand containers.
constexpr size_t kMaxCheckpointBytes = size_t{64} << 20;

absl::Status WrongCheckpoint(const std::string& why) {
  return absl::FailedPreconditionError("the kubelet's checkpoint has an unknown form: " + why);
}

// The member, or null.
const Json& Member(const Json& object, const char* name) {
  static const Json kNull;
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found == object.end() ? kNull : *found;
}

bool AppendTexts(const Json& list, std::vector<std::string>& texts) {
  // Go writes an empty list as null.
  if (!list.is_array()) {
    return list.is_null();
  }
  for (const Json& item : list) {
    if (!item.is_string()) {
      return false;
    }
    texts.push_back(item.get<std::string>());
  }
  return true;
}

// Lists of ids by NUMA node; a single list before Kubernetes 1.20.
absl::StatusOr<std::vector<std::string>> DevicesOf(const Json& entry) {
  const Json& devices = Member(entry, "DeviceIDs");
  std::vector<std::string> ids;
  bool good = true;
  if (devices.is_object()) {
    for (const Json& of_node : devices) {
      good = good && AppendTexts(of_node, ids);
    }
  } else {
    good = AppendTexts(devices, ids);
  }
  return good ? absl::StatusOr<std::vector<std::string>>(std::move(ids))
              : WrongCheckpoint("DeviceIDs is no list of names");
}

absl::StatusOr<CheckpointEntry> EntryOf(const Json& entry) {
  const Json& uid = Member(entry, "PodUID");
  const Json& container = Member(entry, "ContainerName");
  const Json& resource = Member(entry, "ResourceName");
  if (!uid.is_string() || !container.is_string() || !resource.is_string()) {
    return WrongCheckpoint("an entry without PodUID, ContainerName or ResourceName");
  }
  RNICD_ASSIGN_OR_RETURN(std::vector<std::string> ids, DevicesOf(entry));
  return CheckpointEntry{.pod_uid = uid.get<std::string>(),
                         .container = container.get<std::string>(),
                         .resource = resource.get<std::string>(),
                         .device_ids = std::move(ids)};
}

// The entries with exactly these devices.
std::vector<const CheckpointEntry*> EntriesWith(std::span<const CheckpointEntry> entries, const std::string& resource,
                                                std::vector<std::string> device_ids) {
  std::sort(device_ids.begin(), device_ids.end());
  std::vector<const CheckpointEntry*> found;
  for (const CheckpointEntry& entry : entries) {
    std::vector<std::string> ids = entry.device_ids;
    std::sort(ids.begin(), ids.end());
    if (entry.resource == resource && ids == device_ids) {
      found.push_back(&entry);
    }
  }
  return found;
}

}  // namespace

absl::StatusOr<std::vector<CheckpointEntry>> ParseKubeletCheckpoint(std::string_view json,
                                                                    const std::vector<std::string>& resources) {
  const Json document = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  const Json& data = Member(document, "Data");
  const Json& list = Member(data, "PodDeviceEntries");
  const bool has_list = data.is_object() && data.contains("PodDeviceEntries");
  if (!has_list || !(list.is_array() || list.is_null())) {
    return WrongCheckpoint("no PodDeviceEntries");
  }
  std::vector<CheckpointEntry> entries;
  for (const Json& item : list) {
    RNICD_ASSIGN_OR_RETURN(CheckpointEntry entry, EntryOf(item));
    if (std::find(resources.begin(), resources.end(), entry.resource) != resources.end()) {
      entries.push_back(std::move(entry));
    }
  }
  return entries;
}

absl::StatusOr<std::vector<CheckpointEntry>> ReadKubeletCheckpoint(const std::string& folder,
                                                                   const std::vector<std::string>& resources) {
  RNICD_ASSIGN_OR_RETURN(const std::optional<std::string> text,
                         ReadOwnFile(folder + kCheckpointName, kMaxCheckpointBytes));
  return text.has_value() ? ParseKubeletCheckpoint(*text, resources) : std::vector<CheckpointEntry>();
}

std::string PodUidOf(std::span<const CheckpointEntry> entries, const std::string& resource,
                     std::vector<std::string> device_ids) {
  std::set<std::string> uids;
  for (const CheckpointEntry* const entry : EntriesWith(entries, resource, std::move(device_ids))) {
    uids.insert(entry->pod_uid);
  }
  return uids.size() == 1 && IsPodUid(*uids.begin()) ? *uids.begin() : "";
}

// Two containers of a pod may have the same devices, one after the other; then both must have another resource.
std::string OtherResource(std::span<const CheckpointEntry> entries, const std::string& resource,
                          std::vector<std::string> device_ids) {
  std::string name;
  for (const CheckpointEntry* const own : EntriesWith(entries, resource, std::move(device_ids))) {
    const auto other = std::find_if(entries.begin(), entries.end(), [&](const CheckpointEntry& entry) {
      return entry.pod_uid == own->pod_uid && entry.container == own->container && entry.resource != resource &&
             !entry.device_ids.empty();
    });
    if (other == entries.end()) {
      return "";
    }
    name = other->resource;
  }
  return name;
}

}  // namespace rnicd::kubernetes
