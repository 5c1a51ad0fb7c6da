#include "client/kubernetes/grants/grant_request.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "base/units.h"

namespace rnicd::kubernetes {
namespace {

constexpr size_t kTypeCharacters = 24;
constexpr size_t kDeviceCharacters = 20;
// The daemon keeps less than 16 bytes of its own for each page of a memory object.
constexpr uint64_t kHeapShare = kNdkPageBytes / 16;
constexpr uint64_t kMaxBytes = std::numeric_limits<uint64_t>::max();

std::string Cut(std::string_view text, size_t characters) {
  std::string cut(text.substr(0, characters));
  std::replace_if(
      cut.begin(), cut.end(),
      [](char c) { return !absl::ascii_isalnum(c) && std::string_view("-_.").find(c) == std::string_view::npos; }, '-');
  return cut;
}

}  // namespace

std::string GrantNameFor(const std::string& resource, const std::string& first_device, uint64_t chance) {
  return absl::StrCat(Cut(TypeOf(resource), kTypeCharacters), "/", Cut(first_device, kDeviceCharacters), "/",
                      absl::Hex(static_cast<uint32_t>(chance), absl::kZeroPad8));
}

absl::StatusOr<v1::ResourceLimits> LimitsFor(v1::ResourceLimits base, const ResourceSpec& resource, size_t devices,
                                             uint64_t registered_times) {
  if (devices == 0 || resource.unit_bytes == 0 || devices > kMaxBytes / resource.unit_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(devices, " devices of ", resource.name, " are no amount of memory"));
  }
  const uint64_t bytes = devices * resource.unit_bytes;
  base.set_pinned_bytes(bytes);
  base.set_memory_bytes(bytes);
  // A product above 64 bits becomes the largest multiple of a page.
  base.set_registered_bytes(registered_times > kMaxBytes / bytes ? kMaxBytes / kNdkPageBytes * kNdkPageBytes
                                                                 : registered_times * bytes);
  if (base.heap_bytes() != 0) {
    const uint64_t heap = bytes / kHeapShare / kNdkPageBytes * kNdkPageBytes;
    base.set_heap_bytes(std::min(base.heap_bytes(), kMaxBytes / kNdkPageBytes * kNdkPageBytes - heap) + heap);
  }
  return base;
}

v1::CreateGrantRequest RequestFor(const GrantRecord& record, const v1::ConnectionPolicy& connections) {
  v1::CreateGrantRequest request;
  request.set_name(record.name);
  request.set_door(record.has_door);
  *request.mutable_limits() = record.limits;
  *request.mutable_connections() = connections;
  request.mutable_devices()->set_resource_name(record.resource);
  for (const std::string& id : record.device_ids) {
    request.mutable_devices()->add_device_ids(id);
  }
  return request;
}

v1::CreateGrantRequest RenewalOf(const GrantRecord& record, uint64_t bytes, const v1::ConnectionPolicy& connections) {
  v1::CreateGrantRequest request = RequestFor(record, connections);
  v1::ResourceLimits& limits = *request.mutable_limits();
  if (const uint64_t before = limits.pinned_bytes(); bytes < before) {
    limits.set_pinned_bytes(bytes);
    limits.set_memory_bytes(std::min(limits.memory_bytes(), bytes));
    limits.set_registered_bytes(limits.registered_bytes() / before * bytes);
  }
  request.mutable_renewal()->set_grant_id(record.grant_id);
  request.mutable_renewal()->set_secret_sha256(record.secret_sha256);
  return request;
}

GrantRecord RecordOf(const v1::GrantInfo& info, int64_t now_ms) {
  const int64_t age_ms = static_cast<int64_t>(std::min(info.age_ms(), static_cast<uint64_t>(now_ms)));
  return GrantRecord{.grant_id = info.grant_id(),
                     .has_door = info.has_door(),
                     .name = std::string(absl::StripPrefix(info.tenant(), "grant/")),
                     .resource = info.devices().resource_name(),
                     .device_ids = {info.devices().device_ids().begin(), info.devices().device_ids().end()},
                     .limits = info.limits(),
                     .made_ms = now_ms - age_ms};
}

}  // namespace rnicd::kubernetes
