#pragma once

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "daemon/app/host/system_door.h"
#include "daemon/transport/admission.h"
#include "daemon/transport/front_door.h"
#include "daemon/transport/handed_door.h"

namespace rnicd::app {

// As ClaimDoorNames, with the locks and sockets of an older generation. `route`: FrontDoorOptions::route.
absl::StatusOr<std::unique_ptr<DoorNames>> AdoptDoorNames(
    const Config& config, transport::HandedDoor inherited,
    std::function<bool(const transport::AdmittedConnection&)> route);

// Every door on Linux has one.
transport::FrontDoor& FrontDoorOf(SystemDoor& door);

}  // namespace rnicd::app
