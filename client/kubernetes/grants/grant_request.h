#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/kubernetes/grants/grant_file.h"
#include "client/kubernetes/resources/resource.h"
#include "rnicd/v1/admin_service.pb.h"

namespace rnicd::kubernetes {

// The name of a new grant: the resource's type, its first device and a random number, so that an operator sees its
// purpose and names are unique. It has only characters, and at most the length, that the daemon accepts.
std::string GrantNameFor(const std::string& resource, const std::string& first_device, uint64_t chance);

// `base` with the bytes of that many devices. Errors: kInvalidArgument for no devices, because 0 would mean no limit,
// and for more bytes than 64 bits can count.
absl::StatusOr<v1::ResourceLimits> LimitsFor(v1::ResourceLimits base, const ResourceSpec& resource, size_t devices,
                                             uint64_t registered_times);

// Request for a new grant.
v1::CreateGrantRequest RequestFor(const GrantRecord& record, const v1::ConnectionPolicy& connections);
// Request for the renewal of this grant, for at most `bytes`, which are pages and not 0.
v1::CreateGrantRequest RenewalOf(const GrantRecord& record, uint64_t bytes, const v1::ConnectionPolicy& connections);

// Converts a grant as the daemon lists it. `now_ms` is Unix time in milliseconds.
GrantRecord RecordOf(const v1::GrantInfo& info, int64_t now_ms);

}  // namespace rnicd::kubernetes
