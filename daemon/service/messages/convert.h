#pragma once

#include <string>

#include "daemon/core/memory/ticket_table.h"
#include "daemon/core/region/memory_region.h"
#include "daemon/core/request/event_queue.h"
#include "daemon/core/tenant/ledger.h"
#include "rnicd/v1/admin_service.pb.h"
#include "rnicd/v1/session_service.pb.h"

// Conversions of core's own types to wire messages, without decisions; wire/ has those of base/ndk.
namespace rnicd::service {

v1::WatchEventsResponse ToWire(const core::Event& event);

// Use and limit of every resource of a ledger.
void ToWire(const core::Ledger& ledger, google::protobuf::RepeatedPtrField<v1::ResourceUse>* resources);

v1::RegionInfo ToWire(const core::RegionView& view);

std::string ToWire(const core::FdTicket& ticket);

}  // namespace rnicd::service
