#pragma once

#include "absl/status/statusor.h"
#include "base/ndk/adapter_info.h"
#include "rnicd/v1/adapter_service.pb.h"
#include "rnicd/v1/types.pb.h"

namespace rnicd::wire {

v1::NdkVersion ToWire(const NdkVersion& version);
// NDK version of a request; absent means 1.1. Errors: FIELD_OUT_OF_RANGE above 65535.
absl::StatusOr<NdkVersion> FromWire(const v1::NdkVersion* version);

v1::NdkAdapterInfo ToWire(const NdkAdapterInfo& info);
NdkAdapterInfo FromWire(const v1::NdkAdapterInfo& info);

}  // namespace rnicd::wire
