#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "daemon/core/tenant/policy.h"
#include "daemon/core/tenant/workload.h"
#include "rnicd/v1/admin_service.pb.h"

// Devices, containers and their holders: conversions between messages and core's types, with validation.
namespace rnicd::service {

// Errors: FIELD_OUT_OF_RANGE with the field under `field`, "devices.device_ids[3]".
absl::StatusOr<core::DeviceSet> DevicesFromWire(const v1::DeviceSet& devices, const std::string& field);
v1::DeviceSet ToWire(const core::DeviceSet& devices);
// Errors: FIELD_OUT_OF_RANGE with the field under `field`, "pods[0].containers[1].name".
absl::StatusOr<core::ContainerFacts> ContainerFromWire(const v1::ContainerInfo& container, const std::string& field);
v1::ContainerInfo ToWire(const core::ContainerFacts& container);
v1::PodInfo ToWire(const core::PodFacts& pod);

v1::WorkloadName ToWire(const core::WorkloadName& name);

}  // namespace rnicd::service
