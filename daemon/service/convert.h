#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ndk_adapter_info.h"
#include "daemon/core/event_queue.h"
#include "daemon/core/ledger.h"
#include "daemon/core/mdl_chain.h"
#include "daemon/core/memory_region.h"
#include "rnicd/v1/adapter_service.pb.h"
#include "rnicd/v1/admin_service.pb.h"
#include "rnicd/v1/session_service.pb.h"

// Conversions between wire messages and core's types, without decisions.
namespace rnicd::service {

v1::NdkVersion ToWire(const NdkVersion& version);
// NDK version of a request; absent means 1.1. Errors: FIELD_OUT_OF_RANGE above 65535.
absl::StatusOr<NdkVersion> FromWire(const v1::NdkVersion* version);

v1::NdkAdapterInfo ToWire(const NdkAdapterInfo& info);
v1::Registration ToWire(const core::Registration& registration);
v1::WatchEventsResponse ToWire(const core::Event& event);

std::vector<core::MdlEntry> FromWire(const google::protobuf::RepeatedPtrField<v1::MdlEntry>& chain);

// Bytes of a page. Errors: FIELD_OUT_OF_RANGE for an unknown PageSize.
absl::StatusOr<uint64_t> PageBytesFromWire(v1::PageSize page_size);
v1::PageSize PageSizeToWire(uint64_t page_bytes);

// Use and limit of every resource of a ledger.
void ToWire(const core::Ledger& ledger, google::protobuf::RepeatedPtrField<v1::ResourceUse>* resources);

v1::RegionInfo ToWire(const core::RegionView& view);

}  // namespace rnicd::service
