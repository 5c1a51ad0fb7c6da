#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/ntstatus.h"
#include "provider/soft/soft_endpoint.h"

namespace rnicd::provider {

// Inputs and outputs of executing one request.
struct SoftExecution {
  const std::shared_ptr<SoftEndpoint>& self;
  // Connected peer; null if it was destroyed or there is none.
  std::shared_ptr<SoftEndpoint> peer;
  bool peer_lost = false;
  WorkRequest& request;
  // Remote token issued to a FastRegisterWork or BindWork.
  RemoteToken token;
  // Running total of bytes copied.
  uint64_t& moved;
  // Set when the peer's memory refuses the access.
  bool& refused_by_peer;
};

// Executes one initiator request. Returns nullopt when the request must wait for the peer to connect or for a receive;
// that event runs the endpoint again.
std::optional<NtStatus> Execute(SoftExecution execution);

// kSuccess when the peer can be reached; nullopt while the peer has not connected.
std::optional<NtStatus> Reach(const SoftExecution& execution);

// Payload length of a request, in bytes.
uint64_t LengthOf(const WorkRequest& request);

}  // namespace rnicd::provider
