#pragma once

#include <cstdint>
#include <optional>

#include "base/ntstatus.h"
#include "provider/soft/soft_endpoint.h"

namespace rnicd::provider {

// Inputs and outputs of executing one request.
struct SoftExecution {
  SoftEndpoint& self;
  // Its peer, and the running total of bytes copied.
  EngineTurn& turn;
  WorkRequest& request;
  // Remote token issued to a FastRegisterWork or BindWork.
  RemoteToken token;
  // Set when the peer's memory refuses the access, or its receive fails: the peer fails as well, as with a card.
  bool refused_by_peer = false;
};

// Executes one initiator request. Returns nullopt when the request must wait for a receive, which runs the engine
// again.
std::optional<NtStatus> Execute(SoftExecution& execution);

// kSuccess when the peer can be reached.
NtStatus Reach(const SoftExecution& execution);

// Payload length of a request, in bytes.
uint64_t LengthOf(const WorkRequest& request);
// Pins the payload of `request` on the side of `endpoint`.
bool PinPayload(SoftEndpoint& endpoint, WorkRequest& request, SoftAccess access, SoftPins& pins);

// The functions below must be called without pins: they may wait for the last pin of a region, and that pin must not
// belong to this thread. The same is true of calls of an endpoint.

bool InvalidateAtReceiver(SoftEndpoint& host, RemoteToken token);
// Invalidates the sink of a read that asks for it. The status of the request.
NtStatus InvalidateSink(SoftEndpoint& self, const WorkRequest& request);

}  // namespace rnicd::provider
