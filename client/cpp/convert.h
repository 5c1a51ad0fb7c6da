#pragma once

#include "client/cpp/client.h"
#include "rnicd/v1/adapter_service.pb.h"
#include "rnicd/v1/memory_service.pb.h"
#include "rnicd/v1/session_service.pb.h"

namespace rnicd::inline client {

// From the wire to this library's own types, so that its public headers need neither gRPC nor protobuf.
NdkAdapterInfo FromWire(const v1::NdkAdapterInfo& info);
AdapterSummary FromWire(const v1::AdapterSummary& adapter);
SessionUse FromWire(const v1::GetSessionResponse& session);
Registration FromWire(const v1::Registration& registration);
PageSize FromWire(v1::PageSize page_size);

// To the wire.
v1::PageSize ToWire(PageSize page_size);
v1::MdlEntry ToWire(const MdlEntry& entry);

}  // namespace rnicd::inline client
