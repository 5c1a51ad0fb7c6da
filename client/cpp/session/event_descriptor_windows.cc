#include "client/cpp/session/event_descriptor.h"
#include "client/cpp/transport_failure.h"

namespace rnicd::inline client {

absl::StatusOr<int> EventDescriptor::Open(int /*socket*/) {
  return TransportFailure(absl::StatusCode::kUnimplemented, "Windows has no descriptor for events");
}

void EventDescriptor::Signal() {}

void EventDescriptor::Clear(bool /*ended*/) {}

}  // namespace rnicd::inline client
