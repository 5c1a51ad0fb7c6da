#pragma once

namespace rnicd::kubernetes {

// Hands gRPC's log lines to the LibraryLog, if there is one, for the rest of the process's life.
void RouteGrpcLines();

}  // namespace rnicd::kubernetes
