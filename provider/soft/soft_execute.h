#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/ntstatus.h"
#include "provider/soft/soft_endpoint.h"

namespace rnicd::provider {

// What a request needs to be executed.
struct SoftExecution {
  const std::shared_ptr<SoftEndpoint>& self;
  // Null when it is gone or there is none.
  std::shared_ptr<SoftEndpoint> peer;
  bool peer_lost = false;
  WorkRequest& request;
  // Of a FastRegisterWork or BindWork.
  RemoteToken token;
  // Bytes copied; added to.
  uint64_t& moved;
};

// Executes one initiator request, or answers nothing when it has to wait: for the peer to connect, or for a receive.
// Whatever it waits for runs the endpoint again.
std::optional<NtStatus> Execute(SoftExecution execution);

// Whether the peer can be reached; nothing when that is to be waited for.
std::optional<NtStatus> Reach(const SoftExecution& execution);

// The bytes of a request's payload.
uint64_t LengthOf(const WorkRequest& request);

}  // namespace rnicd::provider
