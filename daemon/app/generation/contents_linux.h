#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "daemon/core/generation/inheritance.h"
#include "daemon/transport/handed_door.h"
#include "rnicd/v1/handover.pb.h"

// Converts what one generation of the daemon hands to the next.
namespace rnicd::app {

v1::HandoverProcess ToWire(const core::ProcessKey& process);
core::ProcessKey FromWire(const v1::HandoverProcess& process);

v1::HandoverHeld ToWire(const core::HeldUse& use);
// Resources that are not known here are left out.
core::HeldUse FromWire(const v1::HandoverHeld& held);

// Adds to the contents.
void AddTo(v1::HandoverContents& contents, const core::Inheritance& inheritance);
// Errors: FIELD_OUT_OF_RANGE, a grant or a pod that no operator could have made.
absl::StatusOr<core::Inheritance> InheritanceOf(const v1::HandoverContents& contents);

v1::HandoverFile FileOf(transport::Door door, GrantId grant);
// The socket that accepted a connection which is routed.
transport::Door DoorOf(v1::HandoverFileKind kind);

}  // namespace rnicd::app
